"""Build the sdist and the wheel, inspect them, and list the licences of what they depend on.

    python .ci/distribution.py [FOLDER] [--licences]

Write both to FOLDER (default: dist), the wheel from the sdist, and print the problems of their content;
exit with status 1 if there is one. ``--licences`` writes docs/licences.md instead, from the metadata of
the installed packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "cloudevents_kafka"
LICENCES = ROOT / "docs" / "licences.md"
# The extras; what those who develop the package need is in dependency groups.
EXTRAS = ("cli", "metrics", "protobuf", "protocol", "readers", "report", "spark", "testing", "tracing")
# What an sdist must have, next to the package: enough to build, test and understand it.
IN_SDIST = (
    *(
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "PKG-INFO",
        "README.md",
        "RELEASING.md",
        "pyproject.toml",
    ),
    *(
        ".ci/release.py",
        ".github/workflows/release.yml",
        "docs/design.md",
        "examples/",
        "java/Functions.java",
        "mkdocs.yml",
        "spec-conformance/clauses.toml",
        "tests/conftest.py",
    ),
)
IN_WHEEL = (
    "py.typed",
    "cli/report/page.css",
    "jvm/jar_sets.toml",
    "primitives/clauses.toml",
    "spark/java/jars/",
)
# Suffixes of files that are never meant to be published.
UNWANTED = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv[^/]*|\.DS_Store)(/|$)|\.(pyc|so|log|orig|rej|env|pem|key)$"
)
# Links and pictures of Markdown that do not lead to a whole address, or to a heading of the page.
RELATIVE = re.compile(r"\]\((?!https?://|#)([^)\s]*)|(?:src|href)=\"(?!https?://|#)([^\"]*)\"")
# Paths of the machine that built it.
MACHINE = re.compile(rb"/(root|home/\w+|Users/\w+|tmp/work)/")
LICENCE_HEAD = """\
# Licences of dependencies

This package has the licence Apache-2.0. The tables list the packages that pip installs with it and with
each of its extras, and the licences that their metadata names. The software bill of materials of a
release also lists the dependencies of these packages, with versions.
`python .ci/distribution.py --licences` writes this page.

The package does not contain the jars that Spark and the local broker need. The library downloads them
from the user's Maven repository. Apache Kafka, Spark's Kafka connector, Delta and Iceberg have the
licence Apache-2.0. The POM files of these jars name the licences of their dependencies.
"""


def build(folder: Path) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it, with the hatchling of this environment; return both."""
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def sdist_files(path: Path) -> dict[str, bytes]:
    """Return the files of an sdist, without its first folder."""
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return {name.partition("/")[2]: file.read() for name, file in files.items() if file}


def wheel_files(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def problems(sdist: Mapping[str, bytes], wheel: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what must not be published, or is missing."""
    for kind, files, wanted in (
        ("sdist", sdist, IN_SDIST),
        ("wheel", wheel, [f"{PACKAGE}/{name}" for name in IN_WHEEL]),
    ):
        yield from (f"{kind}: {name} is missing" for name in wanted if not has(files, name))
        yield from (f"{kind}: {name} must not be published" for name in files if UNWANTED.search(name))
    for name, content in wheel.items():
        if not name.startswith((f"{PACKAGE}/", f"{PACKAGE}-")):
            yield f"wheel: {name} is outside of the package"
        if path := MACHINE.search(content):
            yield f"wheel: {name} has the path of a machine, {path[0].decode()}"
    for name in sorted(sdist):
        if name.startswith(f"{PACKAGE}/") and wheel.get(name) != sdist[name]:
            yield f"wheel: {name} is not as in the sdist"
    yield from metadata_problems(next(text for name, text in wheel.items() if name.endswith("/METADATA")))


def has(files: Mapping[str, bytes], name: str) -> bool:
    """Return whether files have a name, or one in the folder of that name."""
    return name in files or (name.endswith("/") and any(one.startswith(name) for one in files))


def metadata_problems(text: bytes) -> Iterator[str]:
    """Yield what is missing in the metadata."""
    fields = HeaderParser().parsestr(text.decode())
    urls = {line.partition(",")[0] for line in fields.get_all("Project-URL", [])}
    for name in sorted({"Changelog", "Documentation", "Issues", "Source"} - urls):
        yield f"metadata: the project URL {name} is missing"
    for name in ("Summary", "License-Expression", "License-File", "Requires-Python", "Keywords"):
        if not fields[name]:
            yield f"metadata: {name} is missing"
    if fields["Description-Content-Type"] != "text/markdown":
        yield "metadata: the description must be Markdown"
    # Where packages are published, the description is shown without the other files.
    for match in RELATIVE.finditer(str(fields.get_payload())):
        yield f"metadata: the description's link {match[1] or match[2]} must be absolute"
    extras = set(fields.get_all("Provides-Extra", []))
    if missing := set(EXTRAS) - extras:
        yield f"metadata: extras are missing: {', '.join(sorted(missing))}"
    if others := extras - set(EXTRAS):
        yield f"metadata: extras must be for users: {', '.join(sorted(others))}"


def licence_page() -> str:
    """Return the page of licences, from the metadata of the installed packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"the package": project["dependencies"]}
    groups |= {f"the extra {name}": project["optional-dependencies"][name] for name in EXTRAS}
    parts = [LICENCE_HEAD]
    for title, requirements in groups.items():
        parts.append(f"\n## Of {title}\n\n| package | licence |\n|---|---|\n")
        names = sorted({re.split(r"[\[<>=!~ ;]", text)[0] for text in requirements})
        parts += [f"| {name} | {licence(name)} |\n" for name in names]
    return "".join(parts)


def licence(name: str) -> str:
    """Return the licence of an installed package: its expression, else its classifiers, else its text."""
    try:
        fields = metadata(name)
    except PackageNotFoundError:
        sys.exit(f"{name} must be installed to read its licence; do: make .venv/.installed")
    if expression := fields["License-Expression"]:
        return expression
    prefix = "License :: OSI Approved :: "
    if classifiers := [one for one in fields.get_all("Classifier", []) if one.startswith(prefix)]:
        return ", ".join(one.removeprefix(prefix) for one in classifiers)
    return (fields["License"] or "not named").strip().splitlines()[0]


def main(arguments: list[str]) -> int:
    """Build and inspect, or write the page of licences; return the exit status."""
    if arguments == ["--licences"]:
        LICENCES.write_text(licence_page(), encoding="utf-8")
        return 0
    sdist, wheel = build(Path(arguments[0]) if arguments else ROOT / "dist")
    found = list(problems(sdist_files(sdist), wheel_files(wheel)))
    print(sdist, wheel, *found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
