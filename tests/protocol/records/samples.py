"""Sample records of all kinds, and the valid combinations of magic and codec."""

from __future__ import annotations

from hypothesis import strategies as st

from cloudevents_kafka.protocol.records import Codec, Record, encode_batch, encode_message_set

FORMS = [
    *((magic, codec) for magic in (0, 1) for codec in Codec if codec != Codec.ZSTD),
    *((2, codec) for codec in Codec),
]
"""What can be written: magic and codec."""

_fields = st.none() | st.binary(max_size=40) | st.sampled_from([b"", b"x" * 63, b"x" * 64, b"y" * 9000])
_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(["n" * 70, "\udcff"])
_headers = st.lists(st.tuples(_names, st.none() | st.binary(max_size=70)), max_size=4)
_timestamps = st.none() | st.integers(0, 2**41) | st.integers(-(2**62), 2**62).filter(lambda ms: ms != -1)


def records(magic: int) -> st.SearchStrategy[list[Record]]:
    one = st.builds(
        Record,
        key=_fields,
        value=_fields,
        headers=_headers if magic == 2 else st.just([]),
        timestamp=_timestamps if magic else st.none(),
    )
    return st.lists(one, min_size=1, max_size=5)


def encoded(given: list[Record], magic: int, codec: Codec = Codec.NONE, **options) -> bytes:
    if magic == 2:
        return encode_batch(given, codec, **options)
    return encode_message_set(given, magic, codec, **options)
