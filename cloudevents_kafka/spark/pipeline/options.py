"""What a pipeline is told: from where, to where, how much at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from cloudevents_kafka.redaction import is_secret_name, mask_credentials, mask_settings, mask_urls
from cloudevents_kafka.spark.pipeline.landing import CHECKPOINT

# What Spark must know when its Java starts; all else can follow.
_AT_LAUNCH: Final = (
    "spark.master",
    "spark.app.name",
    "spark.archives",
    "spark.driver.",
    "spark.files",
    "spark.jars",
    "spark.local.dir",
    "spark.log.",
    "spark.submit.",
)
# Spark sets these itself or refuses them; without headers there are no events.
_OURS: Final = frozenset(
    {
        "subscribe",
        "subscribePattern",
        "assign",
        "startingOffsets",
        "failOnDataLoss",
        "maxOffsetsPerTrigger",
        "includeHeaders",
        "kafka.bootstrap.servers",
    }
)


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a pipeline; raises ValueError for those that cannot be.

    ``out`` and ``checkpoint`` are paths or URLs that Spark can write to; the checkpoint
    is ``out/_checkpoint`` unless told otherwise. ``once`` reads what is there and ends,
    else a batch starts each ``interval`` seconds. ``start`` is where the first run
    begins: "earliest", "latest", or Spark's JSON of offsets; later runs go on where the
    checkpoint stands. ``max_records`` bounds a batch, and with it memory; None is no bound.

    ``allow_data_loss`` goes on where records expired before they were read; else that is
    an error. ``date_of`` says whose date the folders of events have: the event's time
    (the record's where it has none), or the record's "timestamp".

    ``kafka`` are options of Spark's Kafka source (``kafka.security.protocol``, …), ``conf``
    settings of the Spark session (``spark.driver.memory``, …) that `run` makes.
    """

    bootstrap_servers: str
    topics: tuple[str, ...]
    out: str
    checkpoint: str | None = None
    once: bool = False
    interval: float = 10.0
    start: str = "earliest"
    max_records: int | None = 200_000
    allow_data_loss: bool = False
    date_of: Literal["time", "timestamp"] = "time"
    kafka: Mapping[str, str] = {}
    conf: Mapping[str, str] = {}
    master: str | None = None
    ui: bool = False
    log: str | None = None

    def __post_init__(self) -> None:
        if not self.topics or not all(self.topics):
            raise ValueError("no topic: name one at least")
        if not self.bootstrap_servers:
            raise ValueError("no bootstrap servers: give host:port of a broker at least")
        if self.interval < 0:
            raise ValueError(f"the interval is {self.interval} seconds; it must be 0 or more")
        if self.max_records is not None and self.max_records < 1:
            raise ValueError(f"max_records is {self.max_records}; it must be 1 or more, or None for no bound")
        if self.start not in {"earliest", "latest"} and not _is_object(self.start):
            raise ValueError(
                f"start is {self.start!r}; it must be earliest, latest, "
                'or offsets as JSON, such as {"orders": {"0": 17}} (-2 is earliest, -1 latest)'
            )
        if taken := sorted(_OURS & self.kafka.keys()):
            raise ValueError(f"the pipeline sets {', '.join(taken)} itself, from settings of its own")
        if shown := [name for name, value in self.conf.items() if _shows_login(name, value)]:
            raise ValueError(
                f"{', '.join(shown)}: a URL has a user and a password, which Java's command line would show "
                "to anyone on this machine; give them in a file of Ivy's settings (spark.jars.ivySettings)"
            )

    @property
    def checkpoint_url(self) -> str:
        """Where Spark keeps its checkpoint."""
        return self.checkpoint or f"{self.out.rstrip('/')}/{CHECKPOINT}"

    def redact(self, text: str) -> str:
        """Return a text, such as an error of Spark's, without the values of ``kafka`` and ``conf``.

        Those known to be harmless stay.
        """
        return mask_settings(text, {**self.kafka, **self.conf})

    def __repr__(self) -> str:
        """Return the topics and the folder only, as a traceback may show it."""
        return f"PipelineOptions(topics={self.topics!r}, out={mask_urls(self.out)!r}, …)"

    @property
    def names(self) -> tuple[str, ...]:
        """The topics one by one, as Spark takes them apart."""
        names = (name.strip() for name in ",".join(self.topics).split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    def source(self) -> dict[str, str]:
        """Give the options of Spark's Kafka source."""
        options = {
            **self.kafka,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": ",".join(self.topics),
            "startingOffsets": self.start,
            "failOnDataLoss": str(not self.allow_data_loss).lower(),
            "includeHeaders": "true",
        }
        if self.max_records is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_records)
        return options


def on_command_line(name: str) -> bool:
    """Return whether a setting of Spark's may stand on Java's command line, which anyone here can read.

    Only what Spark must know when Java starts; of all else nobody knows that it is harmless.
    """
    return name.startswith(_AT_LAUNCH) and not is_secret_name(name)


def _shows_login(name: str, value: str) -> bool:
    return name.startswith("spark.jars") and mask_credentials(value) != value


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
