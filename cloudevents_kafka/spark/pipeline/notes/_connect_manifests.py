"""`ConnectManifests`: the manifests of a pipeline on Spark Connect.

Each note is a folder in ``_batches/connect`` with one file, which appears in one step: ``topics``,
``begun``, and the last manifests, ``0`` to ``3`` in turn. While Spark writes a manifest, the one before
it is complete.
"""

from __future__ import annotations

import time
from typing import Final, TypeVar

from cloudevents_kafka.spark.pipeline.notes._manifests import (
    NOTES,
    BatchManifest,
    Beginning,
    BegunBatch,
    FirstTopicIds,
    Manifests,
    Note,
    encode_note,
)
from cloudevents_kafka.spark.pipeline.stores import ConnectStore, FolderFailed

_MANIFESTS_KEPT: Final = 4
# Times that a folder is read again that another run is overwriting.
_ATTEMPTS: Final = 5
_Content = TypeVar("_Content")


class ConnectManifests(Manifests):
    """The manifests of a folder, written through Spark Connect."""

    def __init__(self, store: ConnectStore) -> None:
        super().__init__(store)
        self._folders = store

    def write_first(self, first: FirstTopicIds) -> None:
        """Write the topics' ids from before the first batch, unless they are known."""
        if not self.first().ids:
            self._note("topics", first)

    def write_beginning(self, beginning: Beginning) -> None:
        """Write where a new checkpoint begins, in place of an earlier one."""
        self._note("beginning", beginning)

    def begin(self, batch: BegunBatch) -> None:
        """Write the note that a batch is begun, in place of an earlier one."""
        self._note("begun", batch)

    def add(self, manifest: BatchManifest) -> None:
        """Write the manifest of a batch, which lands the batch, in place of an older one."""
        self._note(str(manifest.number % _MANIFESTS_KEPT), manifest)

    def _note(self, name: str, content: Note) -> None:
        self._folders.replace(f"{NOTES}/{name}", encode_note(content))

    def _notes(self, name: str, type_: type[_Content]) -> list[_Content]:
        for _ in range(_ATTEMPTS - 1):
            try:
                return super()._notes(name, type_)
            except FolderFailed:  # another run is overwriting it
                time.sleep(0.2)
        return super()._notes(name, type_)
