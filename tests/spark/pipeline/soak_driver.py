"""Pipelines from a topic to several kinds of tables, until the folder has a file ``stop``.

``soak_driver.py SERVERS TOPIC FOLDER MASTER KIND…``: each batch that lands is a line. An error of
the package is the last line, and the exit code is 3.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline import BatchProgress, EventPipeline, PipelineOptions, local_session

# Short runs do not benefit from more optimization.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CONF = {
    "spark.driver.extraJavaOptions": _QUICK,
    "spark.executor.extraJavaOptions": _QUICK,
    "spark.executor.memory": "512m",
}


def options_of(servers: str, topic: str, folder: str, kind: str) -> PipelineOptions:
    """Return the options of the pipeline for one kind of table; the schema is another from start to start."""
    to, _, compared = kind.partition("-")
    more: dict[str, Any] = {"upsert": {"upsert": ("subject",)}, "distinct": {"deduplicate": "1 day"}}.get(
        compared, {}
    )
    return PipelineOptions(
        bootstrap_servers=servers,
        topics=(topic,),
        out=f"{folder}/{kind}",
        to=to,  # type: ignore[arg-type]  # one of its kinds
        schemas={"t0": secrets.choice(["n INT", "n INT, s STRING", "s STRING, n INT"])},
        **more,
        interval=0,
        max_records=3_000,
    )


def main(servers: str, topic: str, folder: str, master: str, *kinds: str) -> None:
    with (
        local_session(master=master, conf=_CONF, formats=("delta", "iceberg")) as spark,
        ExitStack() as stack,
    ):
        running = []
        for kind in kinds:
            options = options_of(servers, topic, folder, kind)
            pipeline = EventPipeline(options, spark=spark, report=partial(_report, kind))
            running.append(stack.enter_context(pipeline))
        while not Path(folder, "stop").exists():
            for pipeline in running:
                pipeline.wait(0.1)


def _report(kind: str, progress: BatchProgress) -> None:
    _say(f"{kind} {progress}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CloudEventsKafkaError as error:
        _say(f"{type(error).__name__}: {error}")
        sys.exit(3)
