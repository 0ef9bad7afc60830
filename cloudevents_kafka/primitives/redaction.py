"""Masks secrets in settings, URLs and other texts before these texts are printed.

A text that may be a secret is masked. The part of a URL after the first ``?`` or ``#``, and the part before
the last ``@``, may contain secrets, because a password may contain any character. A setting is not masked if
``known_settings.toml`` lists the setting as harmless, and its value has the listed form. All other settings
are masked, because an unknown name may be mistyped or new, and a user may write a password under a wrong
name. ``known_settings.toml`` lists the settings of librdkafka and of Kafka's Java client; the name of a
setting may have the prefix ``kafka.``.

Texts from servers and clients may be very long. A text is therefore cut before it is masked, and each regular
expression takes time that is linear in the length of the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

MASK: Final = "********"
_LONGEST: Final = 1 << 14  # characters of a text that are shown
_CUT: Final = " …"
# Text between white space and quotes, which end a URL.
_WORD: Final = re.compile(r"[^\s'\"<>]+")
# The login of a URL, up to the last @ of the line or to the end of a cut text. The text after the colon must
# not be a port.
_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@:\[]{0,64}:(?![0-9]{1,5}(?!\w))(?:(?!://)[^\n])*(?:@|(?= …\Z))")
_QUERY: Final = re.compile(r"[?#]")
# A name and its separator from a value: = or :, also after a quote or percent-encoded, the end of a tag, or
# the blank after an option such as --password.
_ASSIGNMENT: Final = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]++)(?P<quote>(?:\\*+["']|%22|&quot;)?)"""
    r"""(?P<sign>\s*+(?:@?=|:=?|%3[AaDd]|>)>?|(?=[ \t]))\s*+(?=\S)"""
)
# Tokens without the name of a setting: a token after the name of its scheme (RFC 6750, RFC 7617), and a JWT
# (RFC 7519).
_TOKEN: Final = re.compile(
    r"(?P<scheme>\b(?i:bearer)\s++|\bBasic\s++(?=[a-z]*+[A-Z0-9+/=]))[^\s,;'\"]+|(?<![\w-])eyJ[\w-]++\.[\w.-]+"
)
# A private key in PEM, up to its end or the end of the text.
_PEM: Final = re.compile(r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).*?(?:-----END|\Z)", re.DOTALL)
# An option of JAAS with its quoted value, in which quotes are escaped.
_OPTION: Final = re.compile(r'(?<!\w)(\w++)\s*+=\s*+"((?:[^"\\]|\\.)*+)"', re.DOTALL)

_HOSTS: Final = ("bootstrap.servers", "metadata.broker.list")
_URLS: Final = ("sasl.oauthbearer.token.endpoint.url",)
_NUMBERED: Final = (".ms", ".bytes", ".kbytes")  # suffixes of numeric settings
# Forms of harmless values. They start with \\A, because a search that starts at each character would not be
# linear.
_NUMBER: Final = re.compile(r"\A[+-]?[0-9]{1,19}(\.[0-9]{1,19})?")
_HOST: Final = re.compile(r"\A\s*([A-Za-z_]+://)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?\s*")
_URL: Final = re.compile(r"\Ahttps?://\S+")
_PATH: Final = re.compile(r"\A(?:(\.{0,2}|~[\w-]*)/[^\n:;|@]*|[^\n:;|@]*\.\w{2,8}|probe)")
_LABEL: Final = re.compile(r"\A[\w.$/ @-]{1,120}")
# Names of secrets. Other unknown names are masked too.
_SECRET_NAME: Final = re.compile(
    r"pass|pwd|secret|token|credential|jaas|user\.info|pem$|private|keystore\.key"
    r"|(access|account|api|ssl).?key|auth|cookie|signature",
    re.IGNORECASE,
)
# Names after which a colon without quotes assigns a value, as in a header. After other names, the colon is
# part of a sentence: "the token: it expired".
_HEADER: Final = re.compile(
    r"(pass(word|wd|phrase)|pwd|secret|cookie|authorization|signature"
    r"|(access|account|api|private).?key|(access|refresh|auth|id|client|session|security).?token)\Z",
    re.IGNORECASE,
)
_SEGMENT: Final = r"[A-Za-z0-9]{1,24}"
_NAME: Final = re.compile(rf"\A{_SEGMENT}(?:[._-]{_SEGMENT})*+")
_PLAIN_NAME: Final = re.compile(r"\A[a-z][a-z_]{0,23}(?:\.[a-z_]{1,24})++")
_FIRST: Final = frozenset({"spark", "kafka", "schema", "basic", "https"})  # in addition to librdkafka's
_MIN_LENGTH: Final = 2  # characters; if single characters were masked, texts would be unreadable
_MIN_LENGTH_OF_SPARK: Final = 8  # for Spark's settings, which often have short, harmless values
_MIN_LINE_LENGTH: Final = 8  # characters of a line of a PEM key that is masked separately


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text in which ``secrets``, and all secrets that this module recognizes, are masked."""
    return mask_urls(mask_assignments(_replace(text, dict.fromkeys(secrets, MASK))))


def mask_urls(text: str) -> str:
    """Return a text in which the credentials and the queries of URLs are masked.

    In URLs without a scheme, ``user:password@host`` is masked, and ``user@host`` is not masked.
    """
    return _WORD.sub(lambda word: mask_url(word[0]), _LOGIN.sub(_mask_login, _cut(text)))


def mask_credentials(text: str) -> str:
    """Return a text in which the credentials of URLs are masked.

    If a URL contains ``@``, the query of this URL is also masked. The queries of other URLs are not masked.
    """
    text = _LOGIN.sub(_mask_login, _cut(text))
    return _WORD.sub(lambda word: mask_url(word[0]) if "@" in word[0] else word[0], text)


def _mask_login(match: re.Match[str]) -> str:
    """Mask a login that was cut or has several words; return any other login, which `mask_url` then masks."""
    if not match[0].endswith("@"):
        return MASK
    return match[0] if _WORD.fullmatch(match[0]) else f"{MASK}@"


def mask_url(url: str) -> str:
    """Return a URL in which secrets are masked; a password in the URL may contain white space and quotes."""
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        user, _, password = url.partition(":")
        return f"{MASK}@{url.rpartition('@')[2]}" if user and "@" not in user and "@" in password else url
    login, at, host = rest.rpartition("@")
    before = f"{scheme}://"
    if not at:
        return before + _without_query(rest)
    # In an address without a scheme, the text before :// may be part of a password.
    before = "" if ":" in scheme else before
    # After a question mark, the @ and the text after it may be part of a query.
    return before + (MASK if _QUERY.search(login) else f"{MASK}@{_without_query(host)}")


def _without_query(rest: str) -> str:
    query = _QUERY.search(rest)
    return rest if query is None else f"{rest[: query.end()]}{MASK}"


def mask_setting(name: str, value: str) -> str:
    """Return the value of a setting if it is harmless, else its harmless part or `MASK`."""
    known = name.removeprefix("kafka.")
    if known in _HOSTS:
        return _hosts(value)
    if known in _URLS:
        return mask_url(value) if _URL.fullmatch(value) else MASK
    return value if _is_harmless(known, value) else MASK


def mask_name(name: str) -> str:
    """Return a setting's name, or `MASK` if the name does not look like the name of a setting.

    A user may have written a secret where a name is expected: for example, base64 may end with ``=``, which
    also ends a name.
    """
    first = re.split(r"[._]", name, maxsplit=1)[0]
    if name in _known_names() or _PLAIN_NAME.fullmatch(name):
        return name
    return name if first in _first_segments() and _NAME.fullmatch(name) else MASK


def is_secret_name(name: str) -> bool:
    """Return whether a name is typical of secret settings; settings with other names may be secret, too."""
    return _SECRET_NAME.search(name) is not None


def mask_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a text, such as a client's error, in which the secret values of ``settings`` are masked."""
    masks = {piece: mask for item in settings.items() for piece, mask in _pieces(*item)}
    masks |= {name: MASK for name in settings if len(name) >= _MIN_LENGTH and mask_name(name) == MASK}
    return mask_text(_replace(text, masks))


def mask_assignments(text: str) -> str:
    """Return a text in which tokens, keys, and the values that follow names of secrets are masked.

    A masked value ends only at the end of its line, because a secret may contain any character. A value is
    recognized in ``name=value`` and ``"name": value``, and in JSON, forms, headers, XML and command lines.
    """
    text, parts, at = _PEM.sub(rf"\1{MASK}", _cut(text)), list[str](), 0
    for match in _ASSIGNMENT.finditer(text):
        if match.start() >= at and _is_of_secret(match):
            parts += (text[at : match.end()], MASK)
            at = (text.find("\n", match.end()) + 1 or len(text) + 1) - 1
    return _TOKEN.sub(lambda token: f"{token['scheme'] or ''}{MASK}", "".join([*parts, text[at:]]))


def _is_of_secret(match: re.Match[str]) -> bool:
    """Return whether a match of the assignment pattern assigns a value to the name of a secret."""
    name, sign = match["name"], match["sign"].strip()
    if not sign and not name.startswith("--"):
        return False
    if sign == ":" and not match["quote"]:
        return _HEADER.search(name) is not None and not _is_prose(match)
    return is_secret_name(name)


def _is_prose(match: re.Match[str]) -> bool:
    """Return whether a matched name is an ordinary word in a sentence, as in "wrong password: check it"."""
    before = match.string[max(0, match.start() - 2) : match.start()]
    name = match["name"]
    return name.isalpha() and name.islower() and before[:1].isalpha() and before[1:] == " "


def _replace(text: str, masks: Mapping[str, str]) -> str:
    """Return a text with known secrets masked, the longest first; call this before a text is cut."""
    for piece in sorted(filter(None, masks), key=len, reverse=True):
        text = text.replace(piece, masks[piece])
    return text


def _cut(text: str) -> str:
    """Return a text; a long text is cut before its last word, because the word may be part of a secret."""
    return text if len(text) <= _LONGEST else " ".join(text[:_LONGEST].rsplit(maxsplit=1)[:-1]) + _CUT


@cache
def _listed(shape: str) -> frozenset[str]:
    text = (files("cloudevents_kafka.primitives") / "known_settings.toml").read_text(encoding="utf-8")
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
    """Return whether a value is a number, or consists only of words that ``known_settings.toml`` lists."""
    words = (part.strip().lower() for part in value.split(","))
    return _NUMBER.fullmatch(value.strip()) is not None or all(word in _listed("words") for word in words)


def _hosts(value: str) -> str:
    """Return addresses with all text before the last ``@`` masked, because passwords may contain commas."""
    login, at, rest = value.rpartition("@")
    plain = all(not part.strip() or _HOST.fullmatch(part) for part in rest.split(","))
    if not plain or _QUERY.search(login):
        return MASK  # a password may continue after a comma or an @
    return f"{MASK}@{rest}" if at else rest


def _pieces(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield each secret part of a value, in the form in which clients print it, and its replacement."""
    replacement, is_secret = mask_setting(name, value), is_secret_name(name)
    shortest = _MIN_LENGTH_OF_SPARK if name.startswith("spark.") and not is_secret else _MIN_LENGTH
    if replacement == value or len(value) < shortest or (_is_plain(value) and not is_secret):
        return
    yield from ((part, MASK) for part in _forms(value) if len(part) >= _MIN_LENGTH)
    yield value, replacement


def _forms(value: str) -> Iterator[str]:
    yield value.strip()
    yield value.replace("\\", "\\\\").replace('"', '\\"')  # as in a line of JAAS
    quoted = (option[2] for option in _OPTION.finditer(value) if is_secret_name(option[1]))
    yield from (form for text in quoted for form in (text, re.sub(r"\\(.)", r"\1", text)))
    lines = value.splitlines()
    yield from (line for line in lines[: 0 if len(lines) == 1 else None] if len(line) >= _MIN_LINE_LENGTH)
    login, at, _ = value.rpartition("://")[2].rpartition("@")
    if at:  # librdkafka prints parts of an address
        yield from (login, login.partition(":")[2], *re.split(r"[,@/]", login.partition(":")[2]))
    query = re.split(r"[?#]", value, maxsplit=1)[1:]
    pairs = [pair for text in query for pair in (text, *text.split("&"))]
    yield from (part for pair in pairs for part in (pair, pair.partition("=")[2]))
