"""Which settings may be shown: those known to be harmless, and of these only values of the right shape.

A setting that is not known is a secret: its name may be mistyped, or newer than the list in
``known_settings.toml``. The names there are those of librdkafka and of Kafka's Java client (also behind
``kafka.``). Each has a shape, so a password that was given under a wrong name is not shown either.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from cloudevents_kafka.redaction._urls import MASK, mask_url, mask_urls

_HOSTS: Final = ("bootstrap.servers", "metadata.broker.list")
_URLS: Final = ("sasl.oauthbearer.token.endpoint.url",)
_NUMBERED: Final = (".ms", ".bytes", ".kbytes")  # a setting that ends so is a number
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}(\.[0-9]{1,19})?")
_HOST: Final = re.compile(r"\s*([A-Za-z_]+://)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?\s*")
_URL: Final = re.compile(r"https?://\S+")
_PATH: Final = re.compile(r"(\.{0,2}|~[\w-]*)/[^\n:;|@]*|[^\n:;|@]*\.\w{2,8}|probe")
_LABEL: Final = re.compile(r"[\w.$/ @-]{1,120}")
# Names that speak of a secret. Any other that is not known is not shown either.
_TELLING: Final = re.compile(
    r"pass|secret|token|credential|jaas|user\.info|pem$|private|keystore\.key|(access|api|ssl).?key|auth",
    re.IGNORECASE,
)
_SEGMENT: Final = r"[A-Za-z0-9]{1,24}"
_NAME: Final = re.compile(rf"{_SEGMENT}([._-]{_SEGMENT})*")
_PLAIN_NAME: Final = re.compile(r"[a-z][a-z_]{0,23}(\.[a-z_]{1,24})+")
_FIRST: Final = frozenset({"spark", "kafka", "schema", "basic", "https"})  # of names, beside librdkafka's
_SHORTEST: Final = 2  # characters; less cannot be taken out of a text without spoiling it
_SHORTEST_OF_SPARK: Final = 8  # the same, of the many settings of Spark that are short and harmless
_LONG_LINE: Final = 8  # characters of a line, such as of a key in PEM, that are looked for by themselves


def mask_setting(name: str, value: str) -> str:
    """Return a setting's value as it may be shown: itself, its harmless part, or `MASK`."""
    known = name.removeprefix("kafka.")
    if known in _HOSTS:
        return _hosts(value)
    if known in _URLS:
        return mask_url(value) if _URL.fullmatch(value) else MASK
    return value if _is_harmless(known, value) else MASK


def mask_name(name: str) -> str:
    """Return a setting's name, or `MASK` where it resembles none.

    A secret may stand where a name should: base64 ends in the sign that ends a name.
    """
    first = re.split(r"[._]", name, maxsplit=1)[0]
    alike = _PLAIN_NAME.fullmatch(name) or (first in _first_segments() and _NAME.fullmatch(name))
    return name if alike or name in _known_names() else MASK


def is_secret_name(name: str) -> bool:
    """Return whether a setting's name says that its value is a secret; others may be secrets too."""
    return _TELLING.search(name) is not None


def mask_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a text, such as a client's error, with each value masked that `mask_setting` masks."""
    found = {piece: instead for item in settings.items() for piece, instead in _pieces(*item)}
    found |= {name: MASK for name in settings if len(name) >= _SHORTEST and mask_name(name) == MASK}
    for piece in sorted(found, key=len, reverse=True):
        text = text.replace(piece, found[piece])
    return mask_urls(text)


def mask_assignments(text: str) -> str:
    """Return a text with the rest of each line masked that follows ``a.name=``, for a name of a secret."""
    return re.sub(
        r"(?<![\w.])([\w-]+\.[\w.-]+)(@?\s*=\s*)(\S.*)",
        lambda found: f"{found[1]}{found[2]}{MASK}" if is_secret_name(found[1]) else found[0],
        text,
    )


@cache
def _listed(shape: str) -> frozenset[str]:
    text = (files("cloudevents_kafka.redaction") / "known_settings.toml").read_text(encoding="utf-8")
    return frozenset(tomllib.loads(text)[shape].split())


@cache
def _known_names() -> frozenset[str]:
    return frozenset(_HOSTS + _URLS) | _listed("choices") | _listed("paths") | _listed("labels")


@cache
def _first_segments() -> frozenset[str]:
    return _FIRST | {re.split(r"[._]", name, maxsplit=1)[0] for name in _known_names()}


def _is_harmless(name: str, value: str) -> bool:
    if name in _listed("paths"):
        return _PATH.fullmatch(value) is not None
    if name in _listed("labels"):
        return _LABEL.fullmatch(value) is not None
    if name in _listed("choices") or (name.endswith(_NUMBERED) and not is_secret_name(name)):
        return _is_plain(value)
    return False


def _is_plain(value: str) -> bool:
    """Return whether a value is a number, or words that settings choose from."""
    words = (part.strip().lower() for part in value.split(","))
    return _NUMBER.fullmatch(value.strip()) is not None or all(word in _listed("words") for word in words)


def _hosts(value: str) -> str:
    """Return addresses, without what stands before the last ``@``: a password may have commas."""
    login, at, rest = value.rpartition("@")
    plain = all(not part.strip() or _HOST.fullmatch(part) for part in rest.split(","))
    if not plain or re.search(r"[?#]", login):
        return MASK  # what is no address may go on behind the comma or the @
    return f"{MASK}@{rest}" if at else rest


def _pieces(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield what of a value must not stand in a text, as clients may write it, and what stands instead."""
    instead, telling = mask_setting(name, value), is_secret_name(name)
    shortest = _SHORTEST_OF_SPARK if name.startswith("spark.") and not telling else _SHORTEST
    if instead == value or len(value) < shortest or (_is_plain(value) and not telling):
        return
    yield from ((part, MASK) for part in _forms(value) if len(part) >= _SHORTEST)
    yield value, instead


def _forms(value: str) -> Iterator[str]:
    yield value.strip()
    yield value.replace("\\", "\\\\").replace('"', '\\"')  # in a line of JAAS
    lines = value.splitlines()
    yield from (line for line in lines[: 0 if len(lines) == 1 else None] if len(line) >= _LONG_LINE)
    login, at, _ = value.rpartition("://")[2].rpartition("@")
    if at:  # librdkafka names the parts of an address
        yield from (login, login.partition(":")[2], *re.split(r"[,@/]", login.partition(":")[2]))
    query = re.split(r"[?#]", value, maxsplit=1)[1:]
    pairs = [pair for text in query for pair in (text, *text.split("&"))]
    yield from (part for pair in pairs for part in (pair, pair.partition("=")[2]))
