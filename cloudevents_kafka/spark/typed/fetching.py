"""`SchemaFetcher` fetches the schemas of a registry whose ids or GUIDs are in the frames of payloads.

`SchemaFetcher` runs on the driver, with confluent-kafka's client.

In this module, the id or GUID of a schema is called the name of the schema. For each batch, `SchemaFetcher`
fetches the schemas of the most frequent names that it does not know yet, up to a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients.passing import find_passing
from cloudevents_kafka.clients.schema_registry import (
    MOST_ID,
    NEED,
    Patience,
    close_client,
    find_schema,
    is_unknown,
    registry_client,
    seconds_of,
)
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.primitives.redaction import mask_text
from cloudevents_kafka.spark._patterns import matches_sql
from cloudevents_kafka.spark.typed.framed import Writer, Writers, check_reader, header_sql, name_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.typed.schemas import DataSchema

MOST_NEW: Final = 1_000
"""The largest number of new schemas that are fetched for a batch."""
_MOST_KNOWN: Final = 10_000


class RegistryFailed(CloudEventsKafkaError):
    """The schema registry has not answered, or has rejected a request.

    ``final`` is true if a second attempt would fail in the same way.
    """

    def __init__(self, text: str, *, final: bool) -> None:
        super().__init__(text)
        self.final = final


class SchemaFetcher:
    """Fetches schemas from a registry, and caches these schemas."""

    def __init__(self, registry: Any, schemas: Mapping[str, DataSchema], most: int = MOST_NEW) -> None:
        """Create a fetcher; ``schemas`` maps patterns of event types to the schemas of readers.

        ``registry`` is a client, the settings of a client, or the URL of the registry. Raises `ValueError`
        for wrong settings, and for a reader's schema with which framed data cannot be read.
        """
        settings = {"url": registry} if isinstance(registry, str) else registry
        is_made = isinstance(settings, Mapping)
        self._client: Any = _client(settings) if is_made else registry
        self._is_made = is_made
        self._patience = Patience(seconds_of(settings)) if is_made else Patience()
        self._schemas, self._most = schemas, most
        for schema in schemas.values():
            check_reader(schema)
        self._known: dict[str, Writer] = {}

    def fetch(self, events: DataFrame) -> Writers:
        """Return the registry's schemas whose names occur in the frames of decoded events.

        Raises `RegistryFailed` if the registry does not answer.
        """
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        typed = " OR ".join(matches_sql("`type`", pattern) for pattern in self._schemas)
        names = events.where(typed).selectExpr(f"{name_sql('`data`', header_sql(events.columns))} AS name")
        counted = names.where("name IS NOT NULL").groupBy("name").count()
        is_known = F.col("name").isin(list(self._known)).desc()
        ordered = counted.orderBy(is_known, F.col("count").desc(), "name")
        found = [row["name"] for row in ordered.limit(len(self._known) + self._most).collect()]
        writers = {name: self._known[name] for name in found if name in self._known}
        for name in [name for name in found if name not in writers][: self._most]:
            writers[name] = self._fetch(name)
        self._known |= {name: writer for name, writer in writers.items() if writer.kind}
        return writers

    def end(self) -> None:
        """Make a waiting `fetch` raise `RegistryFailed`, and close the client that this fetcher has created.

        If the caller has passed a client to this fetcher, this client stays open. Any thread may call this
        method.
        """
        self._patience.end()
        if self._is_made:
            close_client(self._client)

    def _fetch(self, name: str) -> Writer:
        is_guid = len(name) == 32
        if not is_guid and int(name) > MOST_ID:
            return Writer()
        try:
            return Writer(*self._patience.wait_for(lambda: find_schema(self._client, name)))
        except Exception as error:
            if is_unknown(error, by_guid=is_guid):
                return Writer()
            text = mask_text(f"{type(error).__name__}: {preview(str(error))}")
            raise RegistryFailed(
                f"the schema registry must return the schema {name}, got {text}; no record of the batch has "
                "landed: check the registry and its settings, and start again",
                final=find_passing(error) is None,
            ) from error


def _client(settings: Mapping[str, Any]) -> Any:
    try:
        return registry_client(settings)
    except ImportError as error:
        raise ValueError(f"a schema registry needs its client: {NEED}") from error
    except ValueError as error:
        raise ValueError(f"a schema registry must have settings of its client: {error}") from None
