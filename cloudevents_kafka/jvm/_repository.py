"""The Maven repository: from an environment variable, from a mirror in Maven's settings, or from jgo."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit
from xml.etree import ElementTree as ET

import msgspec

from cloudevents_kafka.jvm._web import MIRROR_VARIABLE, FetchFailed, Login, Repository
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.primitives.redaction import mask_url

JGO_HINT: Final = f"Do: {pip_install('testing')}"
_SETTINGS_HINT: Final = f"Correct it, or set {MIRROR_VARIABLE} to the URL of the mirror."
_CENTRAL: Final = {"*", "external:*", "central"}  # the values of mirrorOf that include Maven Central
_VARIABLE: Final = re.compile(r"\$\{(env\.[^}]+|user\.home)\}")


def find_repository() -> Repository:
    """Return the repository from the environment variable, from ``~/.m2/settings.xml``, or from jgo.

    Raises `FetchFailed` if Maven's settings cannot be read, or if jgo is needed but is not installed.
    """
    if url := os.environ.get(MIRROR_VARIABLE):
        return _repository(url)
    return _mirror(Path.home() / ".m2" / "settings.xml") or _repository(_default_url())


def _repository(url: str) -> Repository:
    try:
        parts = urlsplit(url)
    except ValueError:
        reason = f"the Maven repository must have a valid URL, got {mask_url(url)}"
        raise FetchFailed(reason, f"Check the URL in {MIRROR_VARIABLE}.") from None
    login, has_login, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    bare = urlunsplit(parts._replace(netloc=host)).rstrip("/")
    return Repository(bare, Login(unquote(user), unquote(password)) if has_login else None)


def _default_url() -> str:
    try:
        from jgo.maven import MavenContext
    except ImportError:
        raise FetchFailed(
            "the package jgo, which has the URL of Maven Central, is not installed",
            f"{JGO_HINT}, or set {MIRROR_VARIABLE} to the URL of a Maven repository.",
        ) from None
    return next(iter(MavenContext().remote_repos.values()))


def _mirror(settings: Path) -> Repository | None:
    """Return the mirror of Maven Central in Maven's settings, or None."""
    try:
        root = ET.fromstring(settings.read_bytes())  # noqa: S314  # the user's own file
    except FileNotFoundError:
        return None
    except (OSError, ET.ParseError) as error:
        raise FetchFailed(f"{settings} cannot be read: {error}", _SETTINGS_HINT) from None
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        names = {name.strip() for name in _text(mirror, "mirrorOf").split(",")}
        if "!central" not in names and names & _CENTRAL and _text(mirror, "blocked") != "true":
            repository = _repository(_text(mirror, "url"))
            login = _server_login(root, _text(mirror, "id"), settings)
            return msgspec.structs.replace(repository, login=login or repository.login)
    return None


def _server_login(root: ET.Element, server_id: str, settings: Path) -> Login | None:
    for server in root.iterfind("{*}servers/{*}server"):
        if _text(server, "id") == server_id and (user := _text(server, "username")):
            password = _text(server, "password")
            if re.fullmatch(r"\{.*\}", password):
                reason = f"{settings}: the password of the server {server_id} must not be encrypted"
                raise FetchFailed(reason, _SETTINGS_HINT)
            return Login(user, password)
    return None


def _text(element: ET.Element, name: str) -> str:
    """Return the text of a child element, in which values replace ``${env.NAME}`` and ``${user.home}``."""
    text = (element.findtext(f"{{*}}{name}") or "").strip()
    values = {"user.home": str(Path.home()), **{f"env.{key}": value for key, value in os.environ.items()}}
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)
