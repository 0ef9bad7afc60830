"""Folders in local file systems, and folders in other file systems, which Hadoop's Java classes access."""

from cloudevents_kafka.spark.pipeline.stores._commit_lock import commit_lock
from cloudevents_kafka.spark.pipeline.stores._store import (
    BACKFILL_FOLDER,
    REPLAYS_FOLDER,
    FolderFailed,
    HadoopStore,
    InUse,
    LocalStore,
    Store,
    folder_lock,
    local_path,
    open_store,
    without_patterns,
)
