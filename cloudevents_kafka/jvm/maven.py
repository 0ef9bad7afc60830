"""Download jars with Maven, where it is installed and PySpark is not."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

from cloudevents_kafka.jvm.answers import WRONG_HINT
from cloudevents_kafka.jvm.coordinates import Coordinate
from cloudevents_kafka.jvm.errors import FetchFailed
from cloudevents_kafka.jvm.fetch import Delivery, Request, explain, mirror, proxy_flags, run
from cloudevents_kafka.jvm.progress import Progress

_MISSING = re.compile(r"Could not find artifact (\S+)")
# group:artifact:type[:classifier]:version:scope:path, and perhaps the name of a Java module.
_LISTED = re.compile(
    r"^ +([^\s:]+):([^\s:]+):([^\s:]+):(?:([^\s:]+):)?([^\s:]+):(?:compile|runtime):(\S.*?)(?: -- .*)?$",
    re.MULTILINE,
)
_LOADING = re.compile(r"Download(?:ing|ed) from \S+ \S+/(\S+)")


def find_maven() -> str | None:
    """Find ``mvn`` on PATH."""
    return shutil.which("mvn")


class Maven:
    """A `Fetch` that runs ``mvn``; it uses the user's own Maven settings and cache."""

    def __init__(self, program: str) -> None:
        self._program = program

    def __call__(self, request: Request, work: Path, progress: Progress) -> list[Delivery]:
        """Download into the user's own Maven repository, where checksums stand beside the files."""
        pom, found = work / "pom.xml", work / "found.txt"
        pom.write_text(project_xml(request, mirror()), encoding="utf-8")
        argv = [
            self._program, "--batch-mode", "--strict-checksums", *proxy_flags(), "-f", str(pom),
            "dependency:list", "-DincludeScope=runtime", "-DoutputAbsoluteArtifactFilename=true",
            f"-DoutputFile={found}",
        ]  # fmt: skip
        code, lines = run(argv, lambda line: _tell(line, progress))
        if code != 0:
            raise explain([line for line in lines if "ERROR" in line] or lines, _MISSING)
        return [delivery(*match.groups()) for match in _LISTED.finditer(found.read_text(encoding="utf-8"))]


def delivery(  # noqa: PLR0917  # the columns of a line
    group: str, artifact: str, extension: str, classifier: str | None, version: str, path: str
) -> Delivery:
    """Make a delivery of what Maven says in a line; its checksums stand beside the file."""
    try:
        coordinate = Coordinate(group, artifact, version, classifier or "", extension)
    except ValueError as error:
        raise FetchFailed(f"what is needed is {error}", WRONG_HINT) from None
    return Delivery(coordinate, Path(path), partial(_published, Path(path)))


def _published(path: Path, algorithm: str) -> str | None:
    try:
        return path.with_name(f"{path.name}.{algorithm}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _tell(line: str, progress: Progress) -> None:
    if match := _LOADING.search(line):
        progress.step(f"jars: {match[1]}")


def project_xml(request: Request, root: str | None) -> str:
    """Write the request as a Maven project."""
    excluded = "".join(
        f"<exclusion>{_tags(text, 'groupId', 'artifactId')}</exclusion>" for text in request.exclude
    )
    names = ("groupId", "artifactId", "version")
    wanted = "\n".join(
        f"<dependency>{_tags(text, *names)}<exclusions>{excluded}</exclusions></dependency>"
        for text in request.coordinates
    )
    return f"""<project>
<modelVersion>4.0.0</modelVersion>
<groupId>cloudevents-kafka</groupId><artifactId>jars</artifactId><version>1</version>
{_repositories(root)}<dependencies>
{wanted}
</dependencies>
</project>
"""


def _repositories(root: str | None) -> str:
    if root is None:
        return ""
    # The id `central` replaces Maven's own repository instead of joining it.
    where = f"<id>central</id><url>{escape(root)}</url>"
    return (
        f"<repositories><repository>{where}</repository></repositories>\n"
        f"<pluginRepositories><pluginRepository>{where}</pluginRepository></pluginRepositories>\n"
    )


def _tags(text: str, *names: str) -> str:
    return "".join(
        f"<{name}>{escape(part)}</{name}>" for name, part in zip(names, text.split(":"), strict=True)
    )
