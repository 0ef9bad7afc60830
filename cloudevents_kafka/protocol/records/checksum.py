"""CRC-32C (Castagnoli), the checksum of record batches.

If google-crc32c (from the extra ``protocol``) is installed, this module uses it. If google-crc32c is not
installed, the module computes the checksum in Python, which takes about 0.2 s per MiB. Messages of magic 0
and 1 have another checksum: CRC-32, which `zlib.crc32` computes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

_POLYNOMIAL = 0x82F63B78  # of RFC 3720, with reversed bits


def crc32c(data: bytes) -> int:
    """Return the checksum of data, from 0 to 2**32 - 1."""
    return _fastest()(data)


def slow_crc32c(data: bytes) -> int:
    """Return the checksum, computed in Python."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _fastest() -> Callable[[bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        return slow_crc32c
    fast: Callable[[bytes], int] = google_crc32c.value
    return fast


@cache
def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0) for crc in table]
    return table
