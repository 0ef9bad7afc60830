"""Run the command line: ``python -m cloudevents_kafka``."""

from cloudevents_kafka.cli import main

if __name__ == "__main__":
    main()
