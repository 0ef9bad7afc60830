"""The types that users see, checked by mypy and by pyright: in a service, and on the pages for users."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

# On one worker, as they write one cache.
pytestmark = pytest.mark.xdist_group("typing")
ROOT = Path(__file__).parent.parent
PROJECT = ROOT / "tests" / "typing"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Names may get another type later; pandas has its types in another package.
_SETTINGS = "# mypy: allow-redefinition, disable-error-code=import-untyped\n"
_SPARK = "from pyspark.sql import SparkSession\n\nspark = SparkSession.builder.getOrCreate()\n"


def mypy(*files: str, severity: str = "error") -> list[str]:
    """Return the errors, or the notes, of mypy with the settings of the project, whose cache it shares."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if f": {severity}: " in line]


def pyright(*files: Path, mode: str, folder: Path, severity: str = "error") -> list[str]:
    """Return the errors, or what else it reports, of pyright, which runs without a network."""
    settings = {
        "include": [str(file) for file in files],
        "pythonVersion": "3.11",
        "typeCheckingMode": mode,
        "extraPaths": [str(ROOT)],
    }
    project = folder / "pyrightconfig.json"
    project.write_text(json.dumps(settings), "utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "-p", str(project)], cwd=folder, capture_output=True, text=True, check=False, timeout=110
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(files), done.stdout + done.stderr
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in found["generalDiagnostics"]
        if each["severity"] == severity
    ]


def test_types_of_the_public_names() -> None:
    """An Event is an SDK event for mypy, and wrong calls are errors."""
    assert mypy("tests/typing/sdk.py") == []


def test_a_service_is_typed(tmp_path: Path) -> None:
    """A user's services pass mypy and pyright, both strict."""
    services = [PROJECT / "service.py", PROJECT / "asyncio_service.py"]
    assert mypy(*map(str, services)) == []
    assert pyright(*services, mode="strict", folder=tmp_path) == []


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    """Both checkers refuse each wrong call, and no other line."""
    lines = (PROJECT / "refused.py").read_text("utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# refused: " in line}
    assert len(wrong) > 5
    for errors in (
        mypy("tests/typing/refused.py"),
        pyright(PROJECT / "refused.py", mode="standard", folder=tmp_path),
    ):
        assert {int(re.findall(r"refused\.py:(\d+)", error)[0]) for error in errors} == wrong, errors


def test_types_by_name_are_typed(tmp_path: Path) -> None:
    """Data of a mapping of types is a union for pyright, and Any for mypy, which joins its values."""
    file = PROJECT / "types_by_name.py"
    lines = enumerate(file.read_text("utf-8").splitlines(), 1)
    expected = {number: set(line.split("# ")[1].split(" | ")) for number, line in lines if "  # " in line}
    assert len(expected) > 5
    for notes, types in (
        (mypy(str(file), severity="note"), {number: {"Any"} for number in expected}),
        (pyright(file, mode="strict", folder=tmp_path, severity="information"), expected),
    ):
        revealed = re.findall(r'py:(\d+): .* is "(.*)"$', "\n".join(notes), re.MULTILINE)
        assert {int(number): set(text.split(" | ")) for number, text in revealed} == types, notes
    assert mypy(str(file)) == []
    assert pyright(file, mode="strict", folder=tmp_path) == []


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
    titles = [title for _, title, _ in found if title]
    for title in titles:  # a page imports its files
        blocks = re.sub(rf"\b(from|import) {title}\b", rf"\1 {name}_{title}", blocks)
        blocks = re.sub(rf"\b{title}\.", f"{name}_{title}.", blocks)
    files = {f"{name}_{title}": code for _, title, code in found if title}
    return {name: session + blocks, **files} if blocks else files


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
    assert mypy(*map(str, files)) == []
    # confluent-kafka's Avro serializers have a constructor that pyright does not see.
    errors = pyright(*files, mode="standard", folder=tmp_path)
    assert [error for error in errors if not error.endswith("Expected 0 positional arguments")] == []
