"""`FileManifests`: the manifests of a folder whose files this process can create, rename and remove."""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.spark.pipeline.notes._manifests import (
    BATCHES,
    BEGINNING,
    BEGUN,
    TOPICS,
    BatchManifest,
    Beginning,
    BegunBatch,
    FirstTopicIds,
    Manifests,
    Note,
    encode_note,
    manifest_path,
)
from cloudevents_kafka.spark.pipeline.stores import FileStore, InUse

# Recent manifests stay for troubleshooting.
_KEPT: Final = 100


class FileManifests(Manifests):
    """The manifests of a folder, each a file."""

    def __init__(self, store: FileStore) -> None:
        super().__init__(store)
        self._files = store

    def write_first(self, first: FirstTopicIds) -> None:
        """Write the topics' ids from before the first batch, unless the file exists."""
        if not self._store.exists(TOPICS) and not self.first().ids:
            self._create(TOPICS, first)

    def write_beginning(self, beginning: Beginning) -> None:
        """Write where a new checkpoint begins, in place of an earlier one."""
        self._files.remove(BEGINNING)
        self._create(BEGINNING, beginning)

    def begin(self, batch: BegunBatch) -> None:
        """Write the note that a batch is begun, in place of an earlier one."""
        self._files.remove(BEGUN)
        self._create(BEGUN, batch)

    def add(self, manifest: BatchManifest) -> None:
        """Create the manifest of a batch, which lands the batch, and remove one that is too old."""
        path = manifest_path(manifest.number)
        try:
            self._create(path, manifest)
        except FileExistsError:
            raise InUse(
                f"{self._files.url(path)} was created by another run meanwhile; wait until it has ended, or "
                "choose another folder"
            ) from None
        if manifest.number >= _KEPT:
            self._files.remove(manifest_path(manifest.number - _KEPT))

    def clear(self) -> bool:
        """Return True, after all manifests and notes were removed."""
        self._files.remove(BATCHES)
        return True

    def _create(self, path: str, content: Note) -> None:
        self._files.create(path, msgspec.json.format(encode_note(content), indent=1))
