"""Tables on the pages of docs say what the code and the data say."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import cloudevents_kafka
from cloudevents_kafka import EventProducer, Record
from cloudevents_kafka.cli.commands import pipeline as command
from cloudevents_kafka.cli.terminal import errors
from cloudevents_kafka.clients.observing import prometheus
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.protocol.client._partitioners import murmur2
from cloudevents_kafka.spark import connector, pipeline
from cloudevents_kafka.spark.pipeline.watching import FIGURES
from cloudevents_kafka.spark.table_formats import FORMATS, TABLE_FORMATS
from cloudevents_kafka.spark.typed.shape import TYPES
from tests.support import clauses_page, speed_page
from tests.support.cases import each

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table after a heading, without its head."""
    text = ("\n" + (DOCS / f"{page}.md").read_text("utf-8")).partition(f"\n{heading}\n")[2]
    table = re.search(r"^\|.*(?:\n\|.*)*", text, re.MULTILINE)
    assert table is not None, heading
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_clauses() -> None:
    """The page of clauses is what the script writes."""
    assert clauses_page.PAGE.read_text("utf-8") == clauses_page.markdown()


def test_sections() -> None:
    """The clauses that code of the package names are in `clauses.toml`, and errors print their sections."""
    assert len(clauses_page.cited_clauses()) > 40
    assert clauses_page.SECTIONS.read_text("utf-8") == clauses_page.sections()


def test_formats() -> None:
    """Each built-in format has a row with its media type, and says whether it is written."""
    table = {row[0].strip("`"): row for row in rows("modes_and_formats", "# Modes and formats")}
    assert list(table) == list(formats.names())
    for name, row in table.items():
        assert formats.media_type_of(name) in row[1]
        assert ("written" in row[2]) is (name in formats.writable())


def test_figures() -> None:
    """The figures of a pipeline have a row each, in the order of their table in the code."""
    assert rows("how-to/watch_a_pipeline", "## Figures") == [
        [f"`{figure.name}`", ", ".join(f"`{label}`" for label in figure.labels), figure.text]
        for figure in FIGURES
    ]


def test_figures_of_a_service() -> None:
    """The figures of clients have a row each, in the order of their table in the code."""
    assert rows("how-to/metrics", "## Figures") == [
        [f"`{name}`", ", ".join(f"`{label}`" for label in labels), text]
        for name, (labels, text) in prometheus.FIGURES.items()
    ]


def test_partitioner() -> None:
    """With the setting on the page, confluent-kafka chooses partitions by murmur2, as Java's clients do."""
    page = (DOCS / "how-to" / "produce.md").read_text("utf-8")
    (setting,) = set(re.findall(r'`"partitioner": "(\w+)"`', page))
    keys = [b"customer-%d" % number for number in range(20)]
    chosen: dict[str, list[int]] = {}
    for name in (setting, "consistent_random"):
        mock = {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "partitioner": name}
        with EventProducer(mock, topic="orders") as producer:
            sent = [producer.send_record(Record(key=key)) for key in keys]
            chosen[name] = [delivery.result(timeout=30).partition or 0 for delivery in sent]
    assert chosen[setting] == [(murmur2(key) & 0x7FFFFFFF) % 4 for key in keys]
    assert chosen[setting] != chosen["consistent_random"]  # the default


def test_peers() -> None:
    """The everyday events without a difference are those of the last exchange."""
    results = json.loads((ROOT / "spec-conformance" / "peers" / "results.json").read_text("utf-8"))["peers"]
    names = json.loads((ROOT / "spec-conformance" / "peers" / "peers.json").read_text("utf-8"))["peers"]
    ways = [f"{way} {form}" for way in ("writes", "reads") for form in ("binary", "json", "protobuf")]
    expected = []
    for peer, found in results.items():
        counts = [found["exchanged"].get(way) for way in ways]
        expected.append([names[peer]["name"], *(f"{c[3]} of {c[2]}" if c else "" for c in counts)])
    assert rows("peers", "# Other SDKs, compared") == expected


def test_versions_of_spark() -> None:
    """The versions of PySpark, with Delta and Iceberg, are those that the package knows."""
    expected = []
    for version in connector.KNOWN_GOOD:
        minor = version.rpartition(".")[0]
        found = [FORMATS[name].releases.get(minor) for name in TABLE_FORMATS]
        expected.append([version, version, *(f.split(":")[2] if f else "none is known" for f in found)])
    assert rows("how-to/delta_and_iceberg", "## Land in one") == expected


def test_types_of_data() -> None:
    """The table of types is that of the code."""
    expected = []
    for row in TYPES:
        form = " with ".join(f"`{word}`" for word in row.json or () if word)
        words = ("`" + text.replace(", ", "`, `") + "`" if text else "" for text in (row.avro, row.python))
        plain = (re.sub(r"`(\w+) (with|of) ([^`]+)`", r"`\1` \2 \3", text) for text in words)
        expected.append([f"`{row.spark}`", form, *plain])
    assert rows("how-to/typed_tables", "## Types") == expected


@each("row", rows("how-to/land_with_spark", "### Exit codes"), ids=lambda r: r[0])
def test_exit_codes_of_the_pipeline(row: list[str]) -> None:
    """Each error of the pipeline ends the command with the exit code in the table."""
    for name in row[0].replace("`", "").split(", "):
        error = getattr(pipeline, name)
        wrong_use = issubclass(error, command._WRONG_USE)
        failed = issubclass(error, (pipeline.PipelineFailed, pipeline.SparkFailed))
        code = errors.BAD_USAGE if wrong_use else errors.BROKER_FAILURE if failed else errors.BAD_DATA
        assert int(row[1]) == (errors.THRESHOLD if error is pipeline.ThresholdCrossed else code)


@each("page", ["README.md", "CONTRIBUTING.md", "docs/operations.md", "docs/stability.md", "docs/tutorial.md"])
def test_versions_of_python(page: str) -> None:
    """Pages name the versions that the classifiers have; 3.14 is on the page about stability alone."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = re.findall(r"Python :: (3\.\d+)", text)
    found = set(re.findall(r"\b3\.1\d\b(?!\.\d)", (ROOT / page).read_text("utf-8")))
    assert set(listed) == (found - {"3.10"}) | {"3.14"}
    assert ("3.14" in found) is (page == "docs/stability.md")


def test_names_in_the_design() -> None:
    """Each private module, with its folders, and each file that the page about the design names exists."""
    text = re.sub(r"^```.*?^```", "", (DOCS / "design.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    package = Path(cloudevents_kafka.__file__).parent  # its source, or where it is installed
    modules = [f"/{path.relative_to(package).with_suffix('').as_posix()}" for path in package.rglob("_*.py")]
    private = set(re.findall(r"`((?:[a-z]\w*\.)*_[a-z]\w*)", text))
    files = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)+)`", text))
    assert len(private) > 50
    assert len(files) > 10
    ends = {name: f"/{name.replace('.', '/')}" for name in private}
    missing = [name for name, end in ends.items() if not any(module.endswith(end) for module in modules)]
    missing += [
        name for name in files if not any((r / name).exists() for r in (ROOT, package, package.parent))
    ]
    assert missing == []


def test_names_in_docstrings() -> None:
    """Each private module that the docstring of a module names is in its folder, or in one above."""
    package, missing, seen = Path(cloudevents_kafka.__file__).parent, [], 0
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        docstring = ast.get_docstring(ast.parse(text), clean=False) or ""
        code = text.replace(docstring, "", 1)
        for name in re.findall(r"`((?:[a-z]\w*\.)*_[a-z]\w*)", docstring):
            above = [folder for folder in path.parents if folder.is_relative_to(package)]
            seen += 1
            is_module = any((folder / f"{name.replace('.', '/')}.py").exists() for folder in above)
            is_own = re.search(rf"\b{name.rpartition('.')[2]}\b", code)
            missing += [] if is_module or is_own else [f"{path}: {name}"]
    assert missing == []
    assert seen > 100


def test_classes_in_docstrings() -> None:
    """Each class or constant of capitals that a docstring names exists in the package."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    known = {"StrEnum"}  # of Python
    named: dict[str, Path] = {}
    for path in Path(cloudevents_kafka.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (getattr(node, field, None) for field in ("id", "attr", "name", "arg"))
            known.update(name for name in names if isinstance(name, str))
            text = (isinstance(node, documented) and ast.get_docstring(node, clean=False)) or ""
            named |= dict.fromkeys(re.findall(r"(?<!`)`(?:\w+\.)*(_?[A-Z]\w*)`", text), path)
    assert len(named) > 200
    assert {name: str(path) for name, path in named.items() if name not in known} == {}


def test_figures_of_speed() -> None:
    """The tables of figures are those of the benchmarks, and so is each other figure of the page."""
    text = speed_page.PAGE.read_text("utf-8")
    assert text == speed_page.markdown()
    measured = text.partition("<!-- All measured figures")[2].replace("<!--", "")
    prose = "\n".join(line for line in measured.splitlines() if not line.startswith("|"))
    found = set(re.findall(r"(?<![\w.,])\d[\d.,]*\d(?!\w)", prose))
    assert len(found) > 10
    assert found - set(re.findall(r"\d[\d.,]*\d", speed_page.SOURCE.read_text("utf-8"))) == set()


def test_benchmarks() -> None:
    """The page about speed names the benchmarks that can be run."""
    text = (DOCS / "speed.md").read_text("utf-8").partition("\n## ")[0]
    named = set(re.findall(r"BENCH_FLAGS=(\w+)|`(\w+)`", text.partition("To measure the ratios")[2]))
    modules = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
    assert {first or second for first, second in named} == modules
