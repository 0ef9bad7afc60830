"""SQL that looks up numbers by the topic and the partition of a record.

An SQL expression with a branch for each topic or partition would be a tree whose depth is the number of
branches. The time that Spark needs to plan this tree would grow faster than the size of the tree, and a large
tree would overflow Spark's stack and heap. A single SQL map would be slow, because Spark searches a map key
by key. So the SQL contains one constant, which is an array of small maps. The hash of a topic's name
determines the index of the small map that contains the topic. The plan of Spark, the code that Spark
compiles, and the time for a record do not depend on the number of topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec

_TYPE = "ARRAY<MAP<STRING, ARRAY<ARRAY<BIGINT>>>>"
# The default of a session may be ``value``, which is the name of the array in Spark's parser.
_OPTIONS = "map('columnNameOfCorruptRecord', '__ce_corrupt')"


def partition_sql(known: Mapping[str, Mapping[str, Sequence[int]]]) -> str:
    """Return SQL for the array of numbers in ``known`` for a record's partition, or null without numbers.

    ``known`` contains the numbers by topic, then by partition (as text). The rows must have the columns of
    Spark's Kafka source.
    """
    size = 1 << max(0, len(known) - 1).bit_length()
    maps: list[dict[str, list[Sequence[int] | None]]] = [{} for _ in range(size)]
    for topic, parts in known.items():
        count = 1 + max(map(int, parts), default=-1)
        maps[crc32(topic.encode()) % size][topic] = [parts.get(str(number)) for number in range(count)]
    # Kafka allows no character in a topic's name that SQL or JSON would escape.
    constant = f"from_json('{msgspec.json.encode(maps).decode()}', '{_TYPE}', {_OPTIONS})"
    of_hash = f"get({constant}, crc32(CAST(`topic` AS BINARY)) % {size})"
    return f"get(try_element_at({of_hash}, `topic`), `partition`)"
