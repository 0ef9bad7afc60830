"""SQL that looks up what is known of the partition that a record is from.

With a branch for each topic or partition, the depth of the tree would be their number. Spark plans such
a tree in more than linear time, and its stack and its heap overflow. Spark searches a map key by key.
So there is one constant, an array of small maps. The hash of a topic's name is its index. The plan, the
code that Spark compiles, and the time for a record are the same for any number of topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec

_TYPE = "ARRAY<MAP<STRING, ARRAY<ARRAY<BIGINT>>>>"


def partition_sql(known: Mapping[str, Mapping[str, Sequence[int]]]) -> str:
    """Return SQL for the numbers of a record's partition, an array; null if it has none.

    ``known`` has them by topic and partition, as text. The rows have the columns of Kafka's source.
    """
    size = 1 << max(0, len(known) - 1).bit_length()
    maps: list[dict[str, list[Sequence[int] | None]]] = [{} for _ in range(size)]
    for topic, parts in known.items():
        count = 1 + max(map(int, parts), default=-1)
        maps[crc32(topic.encode()) % size][topic] = [parts.get(str(number)) for number in range(count)]
    # Kafka allows no character in a topic's name that SQL or JSON would escape.
    constant = f"from_json('{msgspec.json.encode(maps).decode()}', '{_TYPE}')"
    of_hash = f"get({constant}, crc32(CAST(`topic` AS BINARY)) % {size})"
    return f"get(try_element_at({of_hash}, `topic`), `partition`)"
