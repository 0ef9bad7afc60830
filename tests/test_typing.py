"""The types that users see, checked by mypy and by pyright: in a service, and on the pages for users."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

# On one worker, as they write one cache.
pytestmark = pytest.mark.xdist_group("typing")
ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "tests" / "typing"
SERVICES = sorted(PROJECT.glob("*.py"))
STRICT = [PROJECT / f"{name}.py" for name in ("service", "asyncio_service", "types_by_name")]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Names may get another type later; pandas has its types in another package.
_SETTINGS = "# mypy: allow-redefinition, disable-error-code=import-untyped\n"
_SPARK = "from pyspark.sql import SparkSession\n\nspark = SparkSession.builder.getOrCreate()\n"


@cache
def lines_of_mypy(*files: Path) -> list[str]:
    """Return what mypy prints of files, with the settings of the project, whose cache it shares."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.splitlines()


def mypy(*files: Path, severity: str = "error") -> list[str]:
    """Return the errors, or the notes, of mypy; it checks all services at once, as they share most types."""
    found = lines_of_mypy(*(SERVICES if set(files) <= set(SERVICES) else files))
    names = {file.name for file in files}
    return [line for line in found if f": {severity}: " in line and Path(line.split(":")[0]).name in names]


@cache
def findings_of_pyright(*files: Path, mode: str) -> list[dict[str, Any]]:
    """Return what pyright reports of files, without a network."""
    settings = {
        "include": [str(file) for file in files],
        "pythonVersion": "3.11",
        "typeCheckingMode": mode,
        "extraPaths": [str(ROOT)],
    }
    with TemporaryDirectory() as folder:
        project = Path(folder, "pyrightconfig.json")
        project.write_text(json.dumps(settings), "utf-8")
        command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
        done = subprocess.run(
            [*command, "-p", str(project)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(files), done.stdout + done.stderr
    diagnostics: list[dict[str, Any]] = found["generalDiagnostics"]
    return diagnostics


def pyright(*files: Path, mode: str, severity: str = "error") -> list[str]:
    """Return the errors, or what else it reports, of pyright."""
    findings = findings_of_pyright(*(STRICT if set(files) <= set(STRICT) else files), mode=mode)
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in findings
        if each["severity"] == severity and Path(each["file"]) in files
    ]


def test_types_of_the_public_names() -> None:
    """An Event is an SDK event for mypy, and wrong calls are errors."""
    assert mypy(PROJECT / "sdk.py") == []


@pytest.mark.release  # `test_wrong_calls_are_refused` runs both checkers
def test_a_service_is_typed() -> None:
    """A user's services pass mypy and pyright, both strict."""
    services = [PROJECT / "service.py", PROJECT / "asyncio_service.py"]
    assert mypy(*services) == []
    assert pyright(*services, mode="strict") == []


def test_wrong_calls_are_refused() -> None:
    """Both checkers refuse each wrong call, and no other line."""
    lines = (PROJECT / "refused.py").read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# refused: " in line}
    assert len(wrong) > 5
    for errors in (
        mypy(PROJECT / "refused.py"),
        pyright(PROJECT / "refused.py", mode="standard"),
    ):
        assert {int(re.findall(r"refused\.py:(\d+)", error)[0]) for error in errors} == wrong, errors


@pytest.mark.release
def test_types_by_name_are_typed() -> None:
    """Data of a mapping of types is a union for pyright, and Any for mypy, which joins its values."""
    file = PROJECT / "types_by_name.py"
    lines = enumerate(file.read_text("utf-8").splitlines(), 1)
    expected = {number: set(line.split("# ")[1].split(" | ")) for number, line in lines if "  # " in line}
    assert len(expected) > 5
    for notes, types in (
        (mypy(file, severity="note"), {number: {"Any"} for number in expected}),
        (pyright(file, mode="strict", severity="information"), expected),
    ):
        revealed = re.findall(r'py:(\d+): .* is "(.*)"$', "\n".join(notes), re.MULTILINE)
        assert {int(number): set(text.split(" | ")) for number, text in revealed} == types, notes
    assert mypy(file) == []
    assert pyright(file, mode="strict") == []


def programs(page: Path) -> dict[str, str]:
    """Return the Python of a page by name: its blocks, one after the other, and each file that it shows."""
    # Not by their own names: a module asyncio would hide the library's.
    name = "_".join(("page", *page.relative_to(ROOT).with_suffix("").parts)).replace("-", "_")
    found = re.findall(
        r'^```python( spark)?(?: title="(\w+)\.py")?\n(.*?)^```',
        page.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    blocks = "\n".join(code for _, title, code in found if not title)
    session = _SPARK if any(spark for spark, _, _ in found) else ""
    files = {f"{name}_{title}": code for _, title, code in found if title}
    texts = {name: session + blocks, **files} if blocks else files
    for title in [title for _, title, _ in found if title]:  # a page and its files import its files
        for file, text in texts.items():
            text = re.sub(rf"\b(from|import) {title}\b", rf"\1 {name}_{title}", text)  # noqa: PLW2901
            texts[file] = re.sub(rf"\b{title}\.", f"{name}_{title}.", text)
    return texts


# Programs that use the SDK with a client of confluent-kafka, whose types differ from the SDK's. And pyright
# does not look for the files of a page in the folder of the page.
_OTHERS = re.compile(r'page_docs_porting\.py:.*|.*: Import "page_docs_\w+" could not be resolved', re.DOTALL)


@pytest.mark.release
@pytest.mark.parametrize("of_spark", [False, pytest.param(True, marks=pytest.mark.spark)])
def test_the_blocks_of_pages_are_typed(tmp_path: Path, *, of_spark: bool) -> None:
    """Each block of README and docs passes mypy strict and pyright; names may have other types later."""
    if version("confluent-kafka") < "2.16":
        pytest.skip("confluent-kafka 2.13 has narrower types of settings than today's")
    found = {name: code for page in PAGES for name, code in programs(page).items()}
    chosen = {
        name: code
        for name, code in found.items()
        if any(name in code for name in ("pyspark", "pandas")) == of_spark
        and all(find_spec(each) for each in ("fastapi", "faststream") if each in name)
    }
    assert chosen
    files = [tmp_path / f"{name}.py" for name in chosen]
    for file in files:
        file.write_text(_SETTINGS + chosen[file.stem], "utf-8")
    assert [error for error in mypy(*files) if "page_docs_porting.py" not in error] == []
    # confluent-kafka's Avro serializers have a constructor that pyright does not see.
    errors = pyright(*files, mode="standard")
    errors = [error for error in errors if not _OTHERS.fullmatch(error)]
    assert [error for error in errors if not error.endswith("Expected 0 positional arguments")] == []
