"""Download jars with Apache Ivy, which comes inside PySpark and knows Maven Central."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cloudevents_kafka.jvm.fetch import Request, explain, mirror, proxy_flags, run
from cloudevents_kafka.jvm.java import find_java
from cloudevents_kafka.jvm.progress import Progress

_FILE_NAMES = "[artifact]-[revision](-[classifier]).[ext]"
# `group#artifact;version: not found` of a module, `...!file.jar` of a jar alone.
_MISSING = re.compile(r"^:: ([\w.-]+#[\w.-]+;[\w.-]+)(?:: not found|!\S+)")
_FOUND = re.compile(r"^\s+found (\S+) in ")
_LOADED = re.compile(r"\[SUCCESSFUL \] \S+!(\S+) ")


def find_ivy() -> Path | None:
    """Find the Ivy jar of the installed PySpark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


class Ivy:
    """A `Fetch` that runs Ivy in a Java of its own; Ivy checks each SHA-1."""

    def __init__(self, jar: Path) -> None:
        self._jar = jar

    def __call__(self, request: Request, folder: Path, progress: Progress) -> None:
        """Download into `folder`; Ivy's own cache lives as long as the call."""
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-ivy") as work:
            argv = self._command(request, folder, Path(work))
            code, lines = run(argv, _Teller(progress))
        if code != 0:
            raise explain(lines, _MISSING)

    def _command(self, request: Request, folder: Path, work: Path) -> list[str]:
        (work / "ivy.xml").write_text(module_xml(request), encoding="utf-8")
        (work / "settings.xml").write_text(settings_xml(mirror(), work), encoding="utf-8")
        java = str(find_java().executable)
        return [
            java, "-XX:TieredStopAtLevel=1", *proxy_flags(), "-jar", str(self._jar),
            "-settings", str(work / "settings.xml"), "-ivy", str(work / "ivy.xml"), "-confs", "default",
            "-types", "jar", "bundle", "-retrieve", str(folder / _FILE_NAMES),
        ]  # fmt: skip


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


def settings_xml(root: str | None, work: Path) -> str:
    """Write Ivy's settings: one repository, by default the one that Ivy knows."""
    where = f" root={quoteattr(root.rstrip('/') + '/')}" if root else ""
    return f"""<ivysettings>
<settings defaultResolver="central"/>
<caches defaultCacheDir={quoteattr(str(work / "cache"))}/>
<timeout-constraints>
<timeout-constraint name="patience" connectionTimeout="15000" readTimeout="60000"/>
</timeout-constraints>
<resolvers>
<ibiblio name="central" m2compatible="true" timeoutConstraint="patience"{where}/>
</resolvers>
</ivysettings>
"""
