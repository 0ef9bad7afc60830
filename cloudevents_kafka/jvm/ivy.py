"""Download jars with Apache Ivy, which comes inside PySpark and knows Maven Central."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from cloudevents_kafka.jvm.answers import WRONG_HINT
from cloudevents_kafka.jvm.coordinates import Coordinate
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.jvm.fetch import Delivery, Request, explain, mirror, proxy_flags, run
from cloudevents_kafka.jvm.java import find_java
from cloudevents_kafka.jvm.progress import Progress
from cloudevents_kafka.jvm.web import Login, read, realm, split_login
from cloudevents_kafka.redaction import mask_url

# `group#artifact;version: not found` of a module, `...!file.jar` of a jar alone.
_MISSING = re.compile(r"^:: ([\w.-]+#[\w.-]+;[\w.-]+)(?:: not found|!\S+)")
_FOUND = re.compile(r"^\s+found (\S+) in ")
_REPORT = "cloudevents-kafka-jars-default.xml"  # of the module below and its one configuration
_TYPES = ("jar", "bundle")
_LOADED = re.compile(r"\[SUCCESSFUL \] \S+!(\S+\.jar)\b")


def find_ivy() -> Path | None:
    """Find the Ivy jar of the installed PySpark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


class Ivy:
    """A `Fetch` that runs Ivy in a Java of its own."""

    def __init__(self, jar: Path) -> None:
        self._jar = jar

    def __call__(self, request: Request, work: Path, progress: Progress) -> list[Delivery]:
        """Download into Ivy's own cache, which is in `work`."""
        root, login = split_login(mirror() or "")
        code, lines = run(self._command(request, work, root, login), _Teller(progress))
        if code != 0:
            raise explain(lines, _MISSING)
        return list(_delivered(work / "cache" / _REPORT, login))

    def _command(self, request: Request, work: Path, root: str, login: Login | None) -> list[str]:
        (work / "ivy.xml").write_text(module_xml(request), encoding="utf-8")
        (work / "settings.xml").write_text(settings_xml(root, work, login), encoding="utf-8")
        java = str(find_java().executable)
        return [
            java, "-XX:TieredStopAtLevel=1", *proxy_flags(), "-jar", str(self._jar), "-debug",
            "-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), "-confs", "default",
            "-types", *_TYPES,
        ]  # fmt: skip


def _delivered(report: Path, login: Login | None) -> Iterator[Delivery]:
    """Read what Ivy says that it has fetched, and from where."""
    for module in ET.parse(report).getroot().iter("module"):  # noqa: S314  # written by Ivy
        for revision in module.iter("revision"):
            for artifact in revision.iter("artifact"):
                if artifact.get("status") == "successful" and artifact.get("type") in _TYPES:
                    yield _delivery(module, revision, artifact, login)


def _delivery(module: Element, revision: Element, artifact: Element, login: Login | None) -> Delivery:
    origin = artifact.find("origin-location")
    url = "" if origin is None else origin.get("location", "")
    name, extension = artifact.get("name", ""), artifact.get("ext", "jar")
    version = revision.get("name", "")
    # Ivy has no word for a classifier: it is what stands between version and extension.
    file_name = unquote(url.rpartition("/")[2]).removesuffix(f".{extension}")
    classifier = file_name.removeprefix(f"{name}-{version}").removeprefix("-")
    try:
        coordinate = Coordinate(module.get("organisation", ""), name, version, classifier, extension)
    except ValueError as error:
        raise FetchFailed(f"{mask_url(url)} is needed, and it is {error}", WRONG_HINT) from None
    return Delivery(coordinate, Path(artifact.get("location", "")), partial(_published, url, login))


def _published(url: str, login: Login | None, algorithm: str) -> str | None:
    found = read(f"{url}.{algorithm}", login)
    return None if found is None else found.decode("utf-8", "replace")


class _Teller:
    """Turns Ivy's lines into progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._found = 0
        self._loaded = 0

    def __call__(self, line: str) -> None:
        if match := _FOUND.match(line):
            self._found += 1
            self._progress.step(f"jars: {self._found} found, now {match[1]}")
        elif match := _LOADED.search(line):
            self._loaded += 1
            self._progress.step(f"jars: {self._loaded} of {self._found} fetched, now {match[1]}")


def module_xml(request: Request) -> str:
    """Write the request as an Ivy module."""
    lines = ['<ivy-module version="2.0">', '<info organisation="cloudevents-kafka" module="jars"/>']
    lines += ['<configurations><conf name="default"/></configurations>', "<dependencies>"]
    for coordinate in request.coordinates:
        org, name, rev = map(quoteattr, coordinate.split(":"))
        lines.append(f'<dependency org={org} name={name} rev={rev} force="true" conf="default-&gt;default"/>')
    for exclusion in request.exclude:
        org, name = map(quoteattr, exclusion.split(":"))
        lines.append(f"<exclude org={org} module={name}/>")
    return "\n".join([*lines, "</dependencies>", "</ivy-module>", ""])


def settings_xml(root: str, work: Path, login: Login | None = None) -> str:
    """Write Ivy's settings: one repository, by default (an empty root) the one that Ivy knows.

    They have the login, so they are for a folder that only this user can read.
    """
    where = f" root={quoteattr(root.rstrip('/') + '/')}" if root else ""
    return f"""<ivysettings>
<settings defaultResolver="central"/>
<caches defaultCacheDir={quoteattr(str(work / "cache"))}/>
{_credentials(root, login)}<timeout-constraints>
<timeout-constraint name="patience" connectionTimeout="15000" readTimeout="60000"/>
</timeout-constraints>
<resolvers>
<ibiblio name="central" m2compatible="true" timeoutConstraint="patience"{where}/>
</resolvers>
</ivysettings>
"""


def _credentials(root: str, login: Login | None) -> str:
    """Ivy sends a login only to a host and a realm that it was told."""
    asked = None if login is None else realm(root)
    if login is None or asked is None:
        return ""
    words = {
        "host": urlsplit(root).hostname or "",
        "realm": asked,
        "username": login.user,
        "passwd": login.password,
    }
    return f"<credentials {' '.join(f'{name}={quoteattr(word)}' for name, word in words.items())}/>\n"
