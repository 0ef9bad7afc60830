"""`Address`: the host and port of a broker, and their form as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address
from typing import Final, NamedTuple

_DEFAULT_PORT: Final = "9092"
_TEXT: Final = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^\[\]:/]+))(?::(?P<port>[0-9]{1,5}))?")
_PLAIN: Final = re.compile(r"[\w.:\[\]/-]{0,300}")


class Address(NamedTuple):
    """The host and the port of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address as ``host:port``, or ``[host]:port`` for IPv6."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(bootstrap: str | Sequence[str]) -> list[Address]:
    """Return the addresses in a text such as ``host:port``, ``[v6]:port`` or ``host``, or in several texts.

    Raises ValueError for invalid addresses.
    """
    if any("@" in part for part in ([bootstrap] if isinstance(bootstrap, str) else bootstrap)):
        raise ValueError("an address must be host:port without user and password; pass these in sasl")
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    addresses = [_parse_address(part.strip()) for part in parts if part.strip()]
    if not addresses:
        raise ValueError("a bootstrap address is missing; write host:port")
    return addresses


def _parse_address(text: str) -> Address:
    found = _TEXT.fullmatch(text)
    if found is not None and 0 < (port := int(found["port"] or _DEFAULT_PORT)) < 1 << 16:
        if found["host"] is not None:
            return Address(found["host"], port)
        if _is_v6(found["v6"]):
            return Address(found["v6"], port)
    shown = repr(text) if _PLAIN.fullmatch(text) else f"{len(text)} characters"  # other texts may be a secret
    raise ValueError(f"an address must be host:port, got {shown}{_advice(text)}")


def _advice(text: str) -> str:
    """Return a hint that says what to write instead of this text, or ""."""
    if "://" in text:
        return "; leave out the protocol, and pass tls or sasl"
    return f"; put IPv6 in brackets: [{text}]:{_DEFAULT_PORT}" if _is_v6(text) else ""


def _is_v6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
