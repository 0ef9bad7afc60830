"""`PipelineOptions` contains the settings of a pipeline, and checks them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated

import msgspec
from msgspec.structs import replace

from cloudevents_kafka.primitives.options import Option, check_fields
from cloudevents_kafka.primitives.redaction import mask_settings, mask_urls
from cloudevents_kafka.spark._sql import name_parts
from cloudevents_kafka.spark.pipeline.notes import CHECKPOINT, Kind, OffsetRanges, Upsert, check_routes
from cloudevents_kafka.spark.pipeline.options import _checks as rules
from cloudevents_kafka.spark.pipeline.options._schemas import Rescue, SchemaRegistry, Schemas
from cloudevents_kafka.spark.pipeline.options._source import DEFAULTS, ISOLATION, assign
from cloudevents_kafka.spark.pipeline.options.removed import TOPICS, OptionsMeta
from cloudevents_kafka.spark.pipeline.watching import Threshold
from cloudevents_kafka.spark.table_formats import TABLE_FORMATS
from cloudevents_kafka.spark.typed.fetching import SchemaFetcher
from cloudevents_kafka.spark.typed.schemas import DataSchema, read_schemas


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """The settings of a pipeline; raises `ValueError` for invalid settings.

    ``out`` and ``checkpoint`` are paths of folders, or URLs of folders to which Spark can write; the default
    checkpoint is ``out/_checkpoint``. If ``once`` is true, the pipeline reads the existing records and ends;
    if ``once`` is false, a batch starts every ``interval`` seconds. ``start`` is the position in the topics
    at which the first run begins: "earliest", "latest", or offsets in the JSON format of Spark's Kafka
    source. Later runs continue at the offsets in the checkpoint. ``max_records`` limits the number of records
    in a batch, and so limits the memory that a batch needs. If ``max_records`` is None, the number of records
    in a batch has no limit.

    ``to`` is the format of the tables. The format ``parquet`` writes files into the folder ``out``. The
    formats ``delta`` and ``iceberg`` write to tables in the folders ``out/events`` and ``out/quarantine``. If
    ``table`` is set to a name in a catalog, such as ``catalog.schema.orders``, ``delta`` and ``iceberg``
    write to this table and to ``catalog.schema.orders_quarantine``. The folder ``out`` then still contains
    the checkpoint, and the pipeline's files in ``_batches``. Each record lands once.

    ``tables`` maps types of events to separate tables: ``{"com.example.order.*": "orders"}``. In a pattern,
    ``*`` stands for any text. The first pattern that matches the type of an event determines the table of
    this event. If no pattern matches, the event goes to the common table. A separate table is a folder next
    to ``out/events``, or a table next to ``table`` in the same catalog. The pipeline creates a separate table
    when its first event lands. ``tables`` may contain at most 50 patterns. If the patterns are changed
    between runs, the new patterns are used for later batches.

    ``schemas`` maps types of events to schemas of the events' data; the types may be patterns, as in
    ``tables``. Each schema has one of the forms that `data_as` accepts. The data of events with a schema is
    in the struct column ``value`` instead of the column ``data``. If the data of an event does not match the
    schema, the event goes to the quarantine with the verdict ``broken-data``, and the reason names the member
    of the data that does not match. Members of the data that the schema does not have are dropped. If
    ``rescue`` is true, the field ``value._rescued`` contains the members that the schema does not have, and
    the members whose values do not match the schema. Avro data has no members to rescue, so the struct
    ``value`` has no field ``_rescued`` for Avro. A table has one schema, so events with several schemas need
    the option ``tables``.

    ``schema_registry`` is for Avro or JSON data that serializers of a schema registry have written. Such
    serializers write the id of the data's schema in front of the data or into a header. ``schema_registry``
    is the URL of the registry, or the settings of confluent-kafka's registry client, or an object of this
    client. The pipeline reads data with the schema of its writer, and converts the data to the schema in
    ``schemas``. The schema of each id is fetched once, and at most 1,000 new schemas are fetched for a batch.
    If a batch has more new ids, events with the ids that were not fetched go to the quarantine. Events with
    ids that the registry does not know also go to the quarantine. If the registry does not answer, the run
    ends.

    If ``lenient`` is true, records are read as `decode_events` reads them with ``lenient=True``. For example,
    JSON that Debezium or Dapr has written without the header ``content-type`` is then read as an event. If
    ``lenient`` is true, events have an additional column, ``tolerated``. The column ``tolerated`` lists the
    attribute, the rule and the clause of the specification for each accepted deviation. If the event does not
    contain the attribute's value, the column also lists this value. If a record has no deviations, the column
    ``tolerated`` is null. The column ``tolerated`` is added to Delta and Iceberg tables that a run without
    ``lenient`` has created. With the format ``parquet``, only the files of runs with ``lenient`` contain the
    column ``tolerated``. If a folder also contains files without this column, read the folder with Spark's
    option ``mergeSchema`` or DuckDB's ``union_by_name``.

    ``topic_pattern`` is a regular expression, which replaces ``topics``. The pipeline reads all topics whose
    whole name matches the expression, including topics that are created later.

    ``backfill`` is a range of offsets or times, such as ``0..1000``. With ``backfill``, the run reads the
    records in the range that no pipeline has landed, and ends. Such a run does not read beyond the offset at
    which the pipeline in the folder ``out`` continues. A range for all partitions is ``FROM..TO``. FROM and
    TO are each ``earliest``, ``latest``, an offset, a time span before now such as ``-1h``, or ``@`` with a
    time in RFC 3339, a day in UTC or a number of milliseconds since 1970. A range for single partitions is a
    JSON object of offsets, such as ``{"orders": {"0": [17, 41]}}``. The record at TO, or at the second offset
    in the JSON object, is not read. With Delta and Iceberg tables, the pipeline may run at the same time as
    the backfill.

    ``deduplicate`` is a span of time, such as "1h" or "7 days". With ``deduplicate``, an event does not land
    if an earlier record in its batch has the same source and id. An event also does not land if a row in the
    table has the same source and id, and the timestamps of the event and the row differ by at most
    ``deduplicate``. The summary counts the events that do not land because of ``deduplicate``, as
    ``duplicates``.

    With ``upsert``, the table has one row for each key. ``upsert`` defines the key of a row: "key" means the
    key of the Kafka record, and all other values are attributes of the event, such as "subject". With
    ``upsert``, each row contains the last record with its key, in the order of offsets. The column
    ``deleted`` says whether the last record with the key was a deletion. A record without a value is a
    deletion. The option ``deleted``, such as "iodebeziumop=d", names an attribute and a value; an event with
    this attribute and value is also a deletion. ``deduplicate`` and ``upsert`` require ``delta`` or
    ``iceberg``, and cannot be combined with ``tables``.

    If ``adopt`` is true, a pipeline may land in tables that have rows but no commit of a pipeline. Rows that
    the tables already have stay in the tables, and do not count as landed records. If ``adopt`` is false, the
    pipeline does not start with such tables.

    If ``allow_data_loss`` is true, the pipeline continues even if records expired before the pipeline has
    read them. If ``allow_data_loss`` is false, the pipeline fails if records expired before the pipeline has
    read them. ``forget_topics`` lists topics that earlier runs have read and that ``topics`` no longer
    contains, such as deleted topics. The pipeline does not read the remaining records of the topics in
    ``forget_topics``, and continues with all other topics. If neither list contains a topic of the earlier
    runs, and ``allow_data_loss`` is false, the pipeline does not start.

    ``metrics_file`` is a file to which the pipeline appends one line of JSON for each batch, with the metrics
    of the batch. If the pipeline has no batch for a minute, it appends a line with the lags. If the name of
    the file ends in ``.prom``, the file contains all current metrics in Prometheus' format instead of these
    lines. ``metrics_port`` is a port at which Prometheus reads the metrics, or 0 for any unused port (see
    `EventPipeline.metrics_url`). The port is on 127.0.0.1 unless the option is HOST:PORT. ``group`` is a
    consumer group to which the landed offsets are committed, so that Kafka's tools show the lag. The pipeline
    itself does not read the offsets of the consumer group. ``thresholds`` are limits for the lag of a topic
    and for the topic's records in the quarantine. If a limit in ``thresholds`` is exceeded, the pipeline
    warns, ends, or stops reading the topic: see `Threshold`.

    ``kafka_options`` contains options of Spark's Kafka source, such as ``kafka.security.protocol``. Records
    of aborted transactions are not read unless ``kafka.isolation.level`` is ``read_uncommitted``. ``conf``
    contains settings of the Spark session that the pipeline starts, such as ``spark.driver.memory``.
    ``master`` is the master URL of Spark, such as ``local[*]``. If ``ui`` is true, Spark serves its web
    interface. ``log`` is the file to which Spark's Java process writes its log.

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

    bootstrap_servers: Annotated[
        str,
        Option(
            "The brokers (bootstrap.servers).",
            flags="-b --brokers",
            metavar="HOST:PORT,…",
            check=rules.check_servers,
        ),
    ]
    topics: Annotated[
        tuple[str, ...], Option("A topic to read.", flags="-t --topic", check=rules.check_topics)
    ] = ()
    topic_pattern: Annotated[
        str | None,
        Option(
            "Read all topics whose name matches, including topics that are created later.",
            metavar="REGEX",
            check=rules.check_pattern,
        ),
    ] = None
    out: Annotated[
        str,
        Option(
            "The folder for the tables and the checkpoint: a path, or a URL that Spark can write to.",
            flags="-o --out",
            metavar="DIR",
            check=rules.check_location,
        ),
    ]
    to: Annotated[Kind, Option("The kind of the tables.", instead={"kafka": TOPICS})] = "parquet"
    table: Annotated[
        str | None,
        Option(
            "The table of the events, CATALOG.SCHEMA.NAME, with --to delta or iceberg "
            "[default: the folder OUT/events]",
            metavar="NAME",
        ),
    ] = None
    tables: Annotated[
        Mapping[str, str],
        Option(
            "The table for events whose type matches, such as 'com.example.order.*=orders'. "
            "The first pattern that matches decides.",
            flags="--route",
            metavar="TYPES=TABLE",
            example="com.example.order.*=orders",
        ),
    ] = {}
    schemas: Schemas = {}
    rescue: Rescue = False
    schema_registry: SchemaRegistry = None
    deduplicate: Annotated[
        str | None,
        Option(
            "Leave out an event if a row has the same source and id, and a timestamp within a span: 1h, 7d.",
            metavar="SPAN",
            check=rules.check_span,
        ),
    ] = None
    upsert: Annotated[
        tuple[str, ...],
        Option("Have one row for each key: key (the record's key), subject, an extension ….", metavar="KEY"),
    ] = ()
    deleted: Annotated[
        str | None,
        Option(
            "With --upsert, events that delete a row, such as iodebeziumop=d. Records without a value also "
            "delete a row.",
            metavar="ATTRIBUTE=VALUE",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        Option(
            "The folder of Spark's checkpoint.  [default: OUT/_checkpoint]",
            metavar="DIR",
            check=rules.check_location,
        ),
    ] = None
    once: Annotated[bool, Option("Read the topics to their current end, and stop.")] = False
    interval: Annotated[float, Option("The time from one batch to the next.", metavar="SECONDS", least=0)] = (
        10.0
    )
    start: Annotated[
        str,
        Option(
            'The start of a first run: earliest, latest, or offsets as {"topic": {"0": 17}}.',
            flags="--from",
            check=rules.check_start,
        ),
    ] = "earliest"
    max_records: Annotated[
        int | None, Option("The largest number of records in a batch.", metavar="N", least=1)
    ] = 200_000
    lenient: Annotated[
        bool, Option("Accept deviations of known producers, and list the deviations in the column tolerated.")
    ] = False
    allow_data_loss: Annotated[bool, Option("Continue if records expired before they were read.")] = False
    forget_topics: Annotated[
        tuple[str, ...],
        Option(
            "Continue without a topic of earlier runs, such as a deleted topic.",
            flags="--forget-topic",
            metavar="NAME",
            check=rules.check_names,
        ),
    ] = ()
    backfill: Annotated[
        str | None,
        Option(
            "Read the records of a range that no pipeline has landed, and end. FROM and TO are earliest, "
            "latest, N (an offset), -1h, @2026-11-21 or @2026-11-21T12:00:00Z. The record at TO is not read.",
            metavar="FROM..TO",
            check=rules.check_range,
        ),
    ] = None
    metrics_file: Annotated[
        str | None,
        Option(
            "Write the metrics of each batch: as JSON lines, or for Prometheus if FILE ends in .prom.",
            metavar="FILE",
            path="writes",
        ),
    ] = None
    metrics_port: Annotated[
        int | str | None,
        Option(
            "Serve the metrics to Prometheus: PORT, 0 for a free port, or HOST:PORT.  "
            "[default host: 127.0.0.1]",
            metavar="PORT",
            check=rules.check_port,
        ),
    ] = None
    group: Annotated[
        str | None,
        Option(
            "Commit the landed offsets to this consumer group, to show the lag.",
            metavar="NAME",
            check=rules.check_group,
        ),
    ] = None
    thresholds: Annotated[
        tuple[Threshold, ...],
        Option(
            "Warn, end, or stop a topic above a limit, such as 'quarantine>5%/10m:stop', 'lag>5m:end' or "
            "'lag>100000:warn'.",
            flags="--threshold",
            metavar="LIMIT[:ACTION]",
            parse=Threshold.parse,
        ),
    ] = ()
    adopt: Annotated[bool, Option("Land in tables whose rows no pipeline has written.")] = False
    master: Annotated[
        str | None, Option("The Spark master.  [default: local[*]]", check=rules.check_master)
    ] = None
    ui: Annotated[bool, Option("Serve Spark's web UI during the run.")] = False
    log: Annotated[
        str | None,
        Option("Write Spark's warnings to a file.", flags="--spark-log", metavar="FILE", path="writes"),
    ] = None
    kafka_options: Annotated[
        Mapping[str, str], Option(of_settings=True, check=rules.check_source_settings)
    ] = {}
    conf: Annotated[Mapping[str, str], Option(of_settings=True, check=rules.check_spark_settings)] = {}

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_topics()
        self._check_tables()
        self._check_compared()
        if self.backfill is not None:
            self._check_backfill()
        self._check_schemas()  # the last, as options may be checked without their registry

    def _check_topics(self) -> None:
        if self.topic_pattern is None and not (self.topics and all(self.topics)):
            raise ValueError(f"topics must have at least one name, and no empty name, got {self.topics!r}")
        if self.topic_pattern is not None and self.topics:
            raise ValueError(
                f"topics must be empty with topic_pattern, got {self.topics!r} and {self.topic_pattern!r}"
            )
        if both := sorted({*self.forget_topics} & {*self.topic_names}):
            raise ValueError(f"topics and forget_topics must not overlap, got {', '.join(both)} in both")

    def _check_tables(self) -> None:
        if self.to == "parquet" and self.table is not None:
            raise ValueError(
                "table must be None for parquet, which has no tables in a catalog; set the option to"
            )
        if self.table is not None:
            name_parts(self.table)
        check_routes(self.tables, self.table)

    def _check_schemas(self) -> None:
        if self.rescue and not self.schemas:
            raise ValueError("rescue must be False without schemas: data without a schema stays unchanged")
        msgspec.structs.force_setattr(self, "schemas", read_schemas(self.schemas))
        if self.schema_registry is not None:
            if not self.schemas:
                raise ValueError(
                    "schema_registry must be None without schemas: framed data is converted to these schemas"
                )
            found = {name: each for name, each in self.schemas.items() if isinstance(each, DataSchema)}
            SchemaFetcher(self.schema_registry, found)  # the constructor checks both

    def _check_compared(self) -> None:
        named = [name for name in ("deduplicate", "upsert") if getattr(self, name)]
        is_alone = len(named) == 1 and not self.tables and not (self.upsert and self.adopt)
        if named and not (is_alone and self.to in TABLE_FORMATS):
            kinds = " or ".join(f"to={kind!r}" for kind in TABLE_FORMATS)
            raise ValueError(
                f"{' and '.join(named)} must be used without tables and with {kinds}, and upsert must be "
                f"used without deduplicate and without adopt, got to={self.to!r}, "
                f"tables={dict(self.tables)!r} and adopt={self.adopt}"
            )
        Upsert.parse(self.upsert, self.deleted)

    def _check_backfill(self) -> None:
        if self.group is not None or self.thresholds:
            raise ValueError("group and thresholds must not be set with backfill: they are for the pipeline")
        if self.deduplicate is not None or self.upsert:
            raise ValueError(
                "deduplicate and upsert must not be set with backfill: commits of the pipeline would end the "
                "backfill"
            )

    @property
    def checkpoint_url(self) -> str:
        """The folder of Spark's checkpoint."""
        return self.checkpoint or f"{self.out.rstrip('/')}/{CHECKPOINT}"

    def redact(self, text: str) -> str:
        """Return a text, such as a Spark error, without the values of settings that may be secrets.

        If a setting is known to be harmless, the value of the setting stays in the text.
        """
        registry = self.schema_registry if isinstance(self.schema_registry, Mapping) else {}
        settings = {f"schema.registry.{name}": str(value) for name, value in registry.items()}
        return mask_settings(text, {**self.kafka_options, **self.conf, **settings})

    def __repr__(self) -> str:
        """Return a text with only the topics and the folder: tracebacks must not contain secrets."""
        return f"PipelineOptions(topics={self.topics!r}, out={mask_urls(self.out)!r}, …)"

    @property
    def topic_names(self) -> tuple[str, ...]:
        """The names in ``topics``; each text in ``topics`` is split at commas, as Spark splits it."""
        return rules.split_topics(self.topics)

    def reads(self, topic: str) -> bool:
        """Return whether the pipeline reads a topic."""
        if self.topic_pattern is not None:
            return re.fullmatch(self.topic_pattern, topic) is not None
        return topic in self.topic_names

    def without(self, topics: Collection[str]) -> PipelineOptions | None:
        """Return the options without some topics, or None if the options would have no topic left."""
        if self.topic_pattern is not None:
            names = "|".join(map(re.escape, topics))
            return replace(self, topic_pattern=f"(?!(?:{names})$)(?:{self.topic_pattern})")
        left = tuple(name for name in self.topic_names if name not in topics)
        return replace(self, topics=left) if left else None

    @property
    def isolation_level(self) -> str:
        """``read_committed``, or ``read_uncommitted`` if records of aborted transactions are also read."""
        return self.source_options()[ISOLATION]

    def source_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source."""
        options = {
            **DEFAULTS,
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
        """Return the options with which Spark's Kafka source reads exactly these offsets."""
        return assign(self.source_options(), offsets)
