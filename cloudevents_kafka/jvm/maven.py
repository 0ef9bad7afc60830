"""Download jars with Maven, where it is installed and PySpark is not."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from cloudevents_kafka.jvm.fetch import Request, explain, mirror, proxy_flags, run
from cloudevents_kafka.jvm.progress import Progress

_MISSING = re.compile(r"Could not find artifact (\S+)")
_COPYING = re.compile(r"Copying (\S+\.jar) to")
_LOADING = re.compile(r"Download(?:ing|ed) from \S+ \S+/(\S+)")


def find_maven() -> str | None:
    """Find ``mvn`` on PATH."""
    return shutil.which("mvn")


class Maven:
    """A `Fetch` that runs ``mvn``; it uses the user's own Maven settings and cache."""

    def __init__(self, program: str) -> None:
        self._program = program

    def __call__(self, request: Request, folder: Path, progress: Progress) -> None:
        """Download into `folder`."""
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}-maven") as work:
            pom = Path(work) / "pom.xml"
            pom.write_text(project_xml(request, mirror()), encoding="utf-8")
            argv = [
                self._program, "--batch-mode", "--strict-checksums", *proxy_flags(), "-f", str(pom),
                "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
            ]  # fmt: skip
            code, lines = run(argv, lambda line: _tell(line, progress))
        if code != 0:
            raise explain([line for line in lines if "ERROR" in line] or lines, _MISSING)


def _tell(line: str, progress: Progress) -> None:
    if match := _COPYING.search(line) or _LOADING.search(line):
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
