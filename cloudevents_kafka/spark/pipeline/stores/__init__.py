"""Folders in file systems and object stores, read and written by Java or through Spark Connect."""

from cloudevents_kafka.spark.pipeline.stores._commit_lock import commit_lock
from cloudevents_kafka.spark.pipeline.stores._connect_store import ConnectStore, is_connect
from cloudevents_kafka.spark.pipeline.stores._store import (
    FileStore,
    FolderFailed,
    HadoopStore,
    InUse,
    LocalStore,
    Store,
    folder_lock,
    local_path,
    without_patterns,
)
from cloudevents_kafka.spark.pipeline.stores._stores import open_files, open_store
