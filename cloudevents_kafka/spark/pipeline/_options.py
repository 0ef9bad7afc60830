"""`PipelineOptions`: the settings of a pipeline, checked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from cloudevents_kafka.primitives.redaction import is_secret_name, mask_credentials, mask_settings, mask_urls
from cloudevents_kafka.primitives.spans import parse_span
from cloudevents_kafka.spark.pipeline._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline.notes import (
    CHECKPOINT,
    OffsetRanges,
    Target,
    Upsert,
    check_routes,
    check_topic,
)
from cloudevents_kafka.spark.pipeline.removed import CONNECT, TOPICS, OptionsMeta
from cloudevents_kafka.spark.pipeline.watching import Threshold, split_address
from cloudevents_kafka.spark.typed.fetching import SchemaFetcher
from cloudevents_kafka.spark.typed.schemas import DataSchema, read_schemas

TARGETS: Final = ("parquet", "delta", "iceberg")
# Settings that Spark needs when its Java process starts; all others can follow.
_LAUNCH_SETTINGS: Final = (
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
# Set by the pipeline, or refused by Spark; without includeHeaders no record is an event.
_RESERVED: Final = frozenset(
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
_ISOLATION: Final = "kafka.isolation.level"
# Spark's source fetches once more at the end of each partition that it reads, and waits for records that are
# not of its batch: half a second for each by default.
_DEFAULTS: Final = {
    _ISOLATION: "read_committed",
    "kafka.fetch.max.wait.ms": "10",
    # It makes a consumer for each partition, and most of the time for one is that of its hundreds of metrics,
    # if these are also sent to JMX and to brokers that ask for them. The first name is for Kafka's client 4.
    "kafka.metric.reporters": "",
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """The settings of a pipeline; raises `ValueError` for invalid ones.

    ``out`` and ``checkpoint`` are paths, or URLs that Spark can write to; the default checkpoint
    is ``out/_checkpoint``. With ``once`` the pipeline reads the existing records and ends,
    otherwise a batch starts every ``interval`` seconds. ``start`` is where the first run begins:
    "earliest", "latest", or offsets in Spark's JSON; later runs continue at the checkpoint.
    ``max_records`` limits a batch and with it the memory; None means no limit.

    ``to`` is the kind of the tables. ``parquet`` writes files into ``out``. ``delta`` and ``iceberg`` have
    tables in the folders ``out/events`` and ``out/quarantine``, or, if ``table`` is a name in a catalog
    such as ``catalog.schema.orders``, this table and ``catalog.schema.orders_quarantine``; the notes of
    the batches and the checkpoint are in ``out`` even then. Each record lands once.

    ``tables`` maps types of events to tables of their own: ``{"com.example.order.*": "orders"}``. In a
    pattern ``*`` is any text; the first pattern that matches decides, and all other events are in the
    common table. A table is a folder next to ``out/events``, or a table next to ``table`` in its catalog. It
    is created with its first event. There are at most 50 patterns. They may be changed between runs, for the
    batches after that.

    ``schemas`` maps types, with the same patterns, to schemas of their data, as `data_as` takes them. Such
    events have their data in the column ``value``, a struct, and not in ``data``. An event whose data does
    not fit is in the quarantine, with the verdict ``broken-data`` and the place; members that the schema
    does not have are dropped. With ``rescue`` these, and members whose value does not fit, are in
    ``value._rescued`` instead. A table has one schema: events of several schemas need ``tables``.

    ``schema_registry`` is the URL of a schema registry, the settings of its client (confluent's), or the
    client: data of Avro or JSON that its serializers have framed is then read by the schema of its writer
    into that of ``schemas``. Each id is fetched once, at most 1,000 new ones for a batch. Data of other ids,
    or of ids that the registry does not know, is in the quarantine; a registry that is away ends the run.

    ``lenient`` reads as `decode_events` does with ``lenient=True``: JSON of Debezium or Dapr without a
    content-type is an event then. Events have a column more, ``tolerated``, with the attribute, the rule
    and the clause of each deviation that was accepted, and the value of what was left out; null if there
    is none. Tables of Delta and Iceberg
    that a strict run made get the column; in ``parquet`` only the files of lenient runs have it, so read
    a folder of both with Spark's option ``mergeSchema`` or DuckDB's ``union_by_name``.

    ``topic_pattern`` is a regular expression, in place of ``topics``: all topics whose whole name matches are
    read, also those that are created later.

    ``backfill`` is a range of offsets or times, such as ``0..1000``: the run reads what of it no pipeline has
    landed, before the offset at which the pipeline of ``out`` goes on, and ends. The range is ``FROM..TO``,
    each ``earliest``, ``latest``, an offset or ``@`` with a time in RFC 3339, for all partitions; or offsets
    as ``{"orders": {"0": [17, 41]}}``. TO is not read. A pipeline may land in Delta or Iceberg meanwhile.

    ``deduplicate`` is a span of time, such as "1h" or "7 days": an event does not land if an earlier record
    of its batch has its source and id, or a row of the table whose timestamp is at most so far from its own.
    The counts have them as ``duplicates``.

    ``upsert`` names the keys of a table that has one row for each: "key", that of the record, or attributes
    such as "subject". A row is the last record of its key, in the order of offsets; the column ``deleted``
    says whether that was a deletion: a record without a value, or an event with an attribute of the value in
    ``deleted``, such as "iodebeziumop=d". Both options are for ``delta`` and ``iceberg``, without ``tables``.

    ``adopt`` lets tables that have rows, but no commit of a pipeline, take batches: the rows stay, and are no
    proof that a record has landed. The default is to fail.

    ``allow_data_loss`` continues if records expired before they were read; the default is to fail.
    ``forget_topics`` are topics that earlier runs have read and that are no longer in ``topics``, such as one
    that was deleted: what they had left is not read, and all other topics go on where they were.

    ``metrics_file`` gets the figures of each batch as a line of JSON, and after a minute without a batch the
    lags; or, if its name ends in ``.prom``, all figures as Prometheus' text, in place of the text before.
    ``metrics_port`` is a port at which Prometheus reads them, 0 for any that is free (see
    `EventPipeline.metrics_url`), on 127.0.0.1 unless it is HOST:PORT. ``group`` is a consumer group to which
    the landed offsets are committed, so that Kafka's tools show the lag; it decides nothing. ``thresholds``
    warn, end the run, or stop a topic, see `Threshold`.

    ``kafka_options`` has options of Spark's Kafka source (``kafka.security.protocol``, …). Records of aborted
    transactions are not read unless ``kafka.isolation.level`` is ``read_uncommitted``. ``conf`` has
    settings of the Spark session (``spark.driver.memory``, …) that `run` creates. ``master`` is
    the Spark master, ``ui`` whether Spark serves its web page, ``log`` the file for Java's log.

    Examples:
        >>> from cloudevents_kafka.spark import PipelineOptions
        >>> options = PipelineOptions(
        ...     bootstrap_servers="kafka:9092",
        ...     topics=("orders",),
        ...     out="lake/orders",
        ...     to="delta",
        ...     tables={"com.example.order.*": "orders"},
        ... )
        >>> options.checkpoint_url
        'lake/orders/_checkpoint'
    """

    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    out: str
    checkpoint: str | None = None
    once: bool = False
    interval: float = 10.0
    start: str = "earliest"
    max_records: int | None = 200_000
    lenient: bool = False
    allow_data_loss: bool = False
    forget_topics: tuple[str, ...] = ()
    adopt: bool = False
    backfill: str | None = None
    metrics_file: str | None = None
    metrics_port: int | str | None = None
    group: str | None = None
    thresholds: tuple[Threshold, ...] = ()
    kafka_options: Mapping[str, str] = {}
    to: Target = "parquet"
    table: str | None = None
    tables: Mapping[str, str] = {}
    schemas: Mapping[str, Any] = {}
    rescue: bool = False
    schema_registry: Any = None
    deduplicate: str | None = None
    upsert: tuple[str, ...] = ()
    deleted: str | None = None
    conf: Mapping[str, str] = {}
    master: str | None = None
    ui: bool = False
    log: str | None = None

    def __post_init__(self) -> None:
        if self.topic_pattern is not None:
            self._check_pattern(self.topic_pattern)
        elif not self.topics or not all(self.topics):
            raise ValueError(f"topics must have at least one name, and no empty one, got {self.topics!r}")
        if not self.bootstrap_servers:
            raise ValueError("bootstrap_servers must be host:port of at least one broker, got ''")
        if self.interval < 0:
            raise ValueError(f"interval must be 0 seconds or more, got {self.interval}")
        if self.max_records is not None and self.max_records < 1:
            raise ValueError(f"max_records must be 1 or more, or None for no limit, got {self.max_records}")
        if self.start not in {"earliest", "latest"} and not _is_json_object(self.start):
            raise ValueError(
                "start must be earliest, latest, or offsets as JSON, such as "
                f'{{"orders": {{"0": 17}}}} (-2 is earliest, -1 latest), got {self.start!r}'
            )
        if both := sorted(set(self.forget_topics) & set(self.topic_names)):
            raise ValueError(f"topics must not have what forget_topics has, got {', '.join(both)} in both")
        self._check_watching()
        self._check_places()
        self._check_tables()
        if reserved := sorted(_RESERVED & self.kafka_options.keys()):
            raise ValueError(
                f"the pipeline sets {', '.join(reserved)} itself: kafka_options must not have it"
            )
        if exposed := [name for name, value in self.conf.items() if _exposes_login(name, value)]:
            raise ValueError(
                f"{', '.join(exposed)} must not have a URL with a user and a password: other users of this "
                "machine can read Java's command line; use a file of Ivy's settings (spark.jars.ivySettings)"
            )

    def _check_watching(self) -> None:
        if self.metrics_port is not None:
            split_address(self.metrics_port)
        if self.group is not None and not self.group:
            raise ValueError("group must be the name of a consumer group, or None, got ''")

    def _check_pattern(self, pattern: str) -> None:
        if self.topics:
            raise ValueError(f"topics must be empty with topic_pattern, got {self.topics!r} and {pattern!r}")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"topic_pattern must be a regular expression, got {pattern!r}: {error}"
            ) from None

    def _check_places(self) -> None:
        try:
            for name in (*self.topic_names, *self.forget_topics):
                check_topic(name)
        except ValueError as error:
            raise ValueError(
                f"{error}; topics by a regular expression are topic_pattern (--topic-pattern)"
            ) from None
        if str(self.master).startswith("sc://"):
            raise ValueError(
                "master must be local[*], spark://HOST:7077 or another master of Spark, got "
                f"{self.master!r}, which is Spark Connect. {CONNECT}"
            )
        for location in (self.out, self.checkpoint_url):
            parts = urlsplit(location)
            if parts.scheme == "file" and parts.netloc not in {"", "localhost"}:
                raise ValueError(
                    f"out and checkpoint must be folders of this machine if they are file: URLs, got "
                    f"{location!r} with the host {parts.netloc!r}; write file:///PATH"
                )

    def _check_tables(self) -> None:
        if self.to not in TARGETS:
            instead = f". {TOPICS}" if str(self.to) == "kafka" else ""
            raise ValueError(
                f"to must be {', '.join(TARGETS[:-1])} or {TARGETS[-1]}, got {self.to!r}{instead}"
            )
        if self.to == "parquet" and self.table is not None:
            raise ValueError("table must be None for parquet, which has no tables in a catalog; set to")
        if self.table is not None:
            from cloudevents_kafka.spark.pipeline.tables import name_parts

            name_parts(self.table)
        if self.backfill is not None:
            self._check_backfill(self.backfill)
        check_routes(self.tables, self.table)
        self._check_compared()
        self._check_schemas()

    def _check_schemas(self) -> None:
        if self.rescue and not self.schemas:
            raise ValueError("rescue must be False without schemas: data that has no schema is kept as it is")
        msgspec.structs.force_setattr(self, "schemas", read_schemas(self.schemas))
        if self.schema_registry is not None:
            if not self.schemas:
                raise ValueError("schema_registry must be None without schemas, by which its data is read")
            found = {name: each for name, each in self.schemas.items() if isinstance(each, DataSchema)}
            SchemaFetcher(self.schema_registry, found)  # which checks them

    def _check_compared(self) -> None:
        named = [name for name in ("deduplicate", "upsert") if getattr(self, name)]
        is_alone = len(named) == 1 and not self.tables and not (self.upsert and self.adopt)
        if named and not (is_alone and self.to in {"delta", "iceberg"}):
            raise ValueError(
                f"{' and '.join(named)} must be used alone, with to='delta' or to='iceberg', without tables, "
                f"and upsert without adopt, got to={self.to!r}, tables={dict(self.tables)!r} and "
                f"adopt={self.adopt}"
            )
        parse_span(self.deduplicate or "1h", "deduplicate")
        Upsert.parse(self.upsert, self.deleted)

    def _check_backfill(self, backfill: str) -> None:
        BackfillRange.of(backfill)
        if self.group is not None or self.thresholds:
            raise ValueError("group and thresholds must not be set with backfill: they are for the pipeline")
        if self.deduplicate is not None or self.upsert:
            raise ValueError(
                "deduplicate and upsert must not be set with backfill: commits of the pipeline would end it"
            )

    @property
    def checkpoint_url(self) -> str:
        """The folder of Spark's checkpoint."""
        return self.checkpoint or f"{self.out.rstrip('/')}/{CHECKPOINT}"

    def redact(self, text: str) -> str:
        """Return a text, such as an error of Spark, without the values of settings that may be secret.

        Values that are known to be harmless stay.
        """
        registry = self.schema_registry if isinstance(self.schema_registry, Mapping) else {}
        settings = {f"schema.registry.{name}": str(value) for name, value in registry.items()}
        return mask_settings(text, {**self.kafka_options, **self.conf, **settings})

    def __repr__(self) -> str:
        """Return the topics and the folder only: tracebacks must not contain secrets."""
        return f"PipelineOptions(topics={self.topics!r}, out={mask_urls(self.out)!r}, …)"

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The topics one by one: Spark splits each at commas."""
        names = (name.strip() for name in ",".join(self.topics).split(","))
        return tuple(dict.fromkeys(name for name in names if name))

    def reads(self, topic: str) -> bool:
        """Return whether a topic is one of those that are read."""
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return topic in self.topic_names

    def without(self, topics: Collection[str]) -> PipelineOptions | None:
        """Return the options without some topics, or None if no other one is named."""
        if self.topic_pattern is not None:
            names = "|".join(map(re.escape, topics))
            return replace(self, topic_pattern=f"(?!(?:{names})$)(?:{self.topic_pattern})")
        left = tuple(name for name in self.topic_names if name not in topics)
        return replace(self, topics=left) if left else None

    @property
    def isolation_level(self) -> str:
        """``read_committed``, or ``read_uncommitted`` to read records of aborted transactions."""
        return self.source_options()[_ISOLATION]

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source."""
        options = {
            **_DEFAULTS,
            **self.kafka_options,
            "kafka.bootstrap.servers": self.bootstrap_servers,
            **self._subscription(),
            "startingOffsets": self.start,
            "failOnDataLoss": str(not self.allow_data_loss).lower(),
            "includeHeaders": "true",
        }
        if self.max_records is not None:
            options["maxOffsetsPerTrigger"] = str(self.max_records)
        return options

    def _subscription(self) -> dict[str, str]:
        if self.topic_pattern is not None:
            return {"subscribePattern": self.topic_pattern}
        return {"subscribe": ",".join(self.topics)}

    def batch_options(self, offsets: OffsetRanges) -> dict[str, str]:
        """Return the options of Spark's Kafka source to read exactly these offsets."""
        options = self.source_options()
        for name in ("subscribe", "subscribePattern", "maxOffsetsPerTrigger"):
            options.pop(name, None)
        partitions = {topic: [int(number) for number in numbers] for topic, numbers in offsets.items()}
        starts, ends = (
            {
                topic: {number: getattr(range_, end) for number, range_ in numbers.items()}
                for topic, numbers in offsets.items()
            }
            for end in ("start", "end")
        )
        return {
            **options,
            "assign": json.dumps(partitions),
            "startingOffsets": json.dumps(starts),
            "endingOffsets": json.dumps(ends),
        }


def is_launch_setting(name: str) -> bool:
    """Return whether a setting of Spark may be on Java's command line, which other users can read.

    Only settings that Java needs at its start are; any other setting may contain a secret.
    """
    return name.startswith(_LAUNCH_SETTINGS) and not is_secret_name(name)


def _exposes_login(name: str, value: str) -> bool:
    return name.startswith("spark.jars") and mask_credentials(value) != value


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
