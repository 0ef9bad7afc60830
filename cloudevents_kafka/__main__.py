"""Run the command line: ``python -m cloudevents_kafka``."""

from __future__ import annotations

from cloudevents_kafka.cli import main

if __name__ == "__main__":
    main()
