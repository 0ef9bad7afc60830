"""What ``pipeline`` makes of a command line, of a file of options, and of where settings are otherwise.

The law: a file of options stands for the command line that it replaces. So what ``--print-options`` prints of
a command line is, read as a file, the same options, and it has no secret.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.cli.commands import pipeline as command
from cloudevents_kafka.cli.commands._pipeline_options import FIELDS
from cloudevents_kafka.primitives.options import Field
from cloudevents_kafka.spark import pipeline
from tests.support.strategies import scaled

SECRET = "hunter2-hunter2"
SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}}'


class Runs:
    """Runs the command in a folder, with a pipeline that keeps its options and lands nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[pipeline.PipelineOptions] = []
        made, counts = self.made, pipeline.BatchCounts()

        class Fake:
            metrics_url = "http://127.0.0.1:1/metrics"

            def __init__(self, options: pipeline.PipelineOptions, **_: Any) -> None:
                made.append(options)

            def start(self) -> Fake:
                return self

            def run(self, **_: Any) -> pipeline.Summary:
                return pipeline.Summary(
                    topics=(),
                    events_table="e",
                    quarantine_table="q",
                    checkpoint="c",
                    batches=0,
                    recovered=None,
                    complete=True,
                    seconds=0.0,
                    counts=counts,
                    total=counts,
                )

        self.fake = Fake

    def run(self, *words: str) -> Result:
        """Return the result of the command."""
        return CliRunner().invoke(app, ["pipeline", *words], prog_name="cloudevents-kafka")

    def options(self, *words: str) -> pipeline.PipelineOptions | str:
        """Return the options of a run, or its error."""
        self.made.clear()
        done = self.run(*words)
        assert (done.exit_code, len(self.made)) in {(0, 1), (2, 0)}, done.output
        return self.made[0] if self.made else done.stderr

    def file(self, text: str, name: str = "pipeline.toml") -> str:
        """Return the name of a new file of options."""
        (self.folder / name).write_text(text, "utf-8")
        return name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The command, in a folder with a schema and a file with a secret."""
    folder = tmp_path_factory.mktemp("options")
    (folder / "secret").write_text(f"{SECRET}\n")
    (folder / "order.json").write_text(SCHEMA)
    found = Runs(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(pipeline, "EventPipeline", found.fake)
        patch.setattr(command, "require", lambda *_: None)
        patch.setattr(command, "_refuse_unknown_topics", lambda *_: None)
        yield found


# --- who wins -------------------------------------------------------------------------

BASE = ("-t", "t", "-o", "o")
SOURCES = ("--profile", "--config", "environment", "--options", "command line")
"""Where a setting may be; later ones win."""


@pytest.mark.parametrize(
    ("setting", "variable", "key", "flag"),
    [
        ("spark.app.name", "CE_KAFKA_SPARK_APP_NAME", '[settings]\n"spark.app.name"', "-Xspark.app.name="),
        ("bootstrap.servers", "CE_KAFKA_BOOTSTRAP_SERVERS", "bootstrap_servers", "-b"),
    ],
)
def test_who_wins(runs: Runs, monkeypatch, setting: str, variable: str, key: str, flag: str) -> None:
    """Of any sources that have a setting, the last one in the order of the page wins."""
    values = {name: f"{name.strip('-').replace(' ', '-')}:1" for name in SOURCES}
    (runs.folder / "profiles.toml").write_text(f'[p]\n"{setting}" = "{values["--profile"]}"\n')
    (runs.folder / "c.properties").write_text(f"{setting}={values['--config']}\n")
    monkeypatch.setenv("CE_KAFKA_PROFILES", str(runs.folder / "profiles.toml"))
    file = runs.file(f'{key} = "{values["--options"]}"\n')
    words = {
        "--profile": ("--profile", "p"),
        "--config": ("--config", "c.properties"),
        "environment": (),
        "--options": ("--options", file),
        "command line": (f"{flag}{values['command line']}",),
    }
    brokers = () if setting == "bootstrap.servers" else ("-b", "b:1")
    for used in itertools.product([False, True], repeat=len(SOURCES)):
        chosen = [name for name, is_used in zip(SOURCES, used, strict=True) if is_used]
        with pytest.MonkeyPatch.context() as patch:
            if "environment" in chosen:
                patch.setenv(variable, values["environment"])
            found = runs.options(*BASE, *brokers, *(word for name in chosen for word in words[name]))
        if not chosen and not brokers:
            assert isinstance(found, str)
            continue
        assert isinstance(found, pipeline.PipelineOptions), found
        winner = found.conf.get(setting) if brokers else found.bootstrap_servers
        assert winner == (values[chosen[-1]] if chosen else None), chosen


FILE = """
bootstrap_servers = "b:1"
topics = ["a", "b"]
out = "o"
once = true
interval = 5
tables = { "x.*" = "xs", "y" = "ys" }
profile = "p"
quiet = true

[settings]
"spark.driver.memory" = "2g"
"schema.registry.url" = "http://r:1"
spark.app.name = "of the file"
"""
REPLACED = [
    ((), {"topics": ("a", "b"), "once": True, "interval": 5, "tables": {"x.*": "xs", "y": "ys"}}),
    (("-t", "c"), {"topics": ("c",)}),
    (("--no-once",), {"once": False}),
    (("--interval", "10.0"), {"interval": 10.0}),  # the default, too
    (("--route", "z=zs"), {"tables": {"z": "zs"}}),
    (("-b", "c:1"), {"bootstrap_servers": "c:1"}),
    (("-X", "bootstrap.servers=c:1"), {"bootstrap_servers": "c:1"}),
    (
        ("-X", "spark.driver.memory=3g"),
        {"conf": {"spark.driver.memory": "3g", "spark.app.name": "of the file"}},
    ),
    (
        ("--schema", "a=order.json", "-X", "schema.registry.url=http://s:1"),
        {"schema_registry": {"url": "http://s:1"}},
    ),
    (
        ("--schema", "a=order.json", "--schema-registry", "http://s:1"),
        {"schema_registry": {"url": "http://s:1"}},
    ),
]


@pytest.mark.parametrize(("words", "expected"), REPLACED, ids=" ".join)
def test_the_command_line_replaces_options(runs: Runs, monkeypatch, words, expected) -> None:
    """An option of the command line replaces that of the file, whole; settings are replaced one by one."""
    (runs.folder / "profiles.toml").write_text('[p]\nclient.id = "p"\n')
    monkeypatch.setenv("CE_KAFKA_PROFILES", str(runs.folder / "profiles.toml"))
    if "--schema" not in words:
        words = (*words, "--schema", "a=order.json")
    found = runs.options("--options", runs.file(FILE), *words)
    assert isinstance(found, pipeline.PipelineOptions), found
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.kafka_options["kafka.client.id"] == "p"


@pytest.mark.parametrize(
    ("line", "words", "message"),
    [
        ("interval = -1", (), "pipeline.toml: interval must be 0 seconds or more, got -1"),
        ("interval = -1", ("--interval", "nan"), "'--interval': nan is not a number of seconds"),
        ("rescue = true", (), "pipeline.toml: rescue must be False without schemas"),
        ("rescue = true", ("--from", "x"), "kafka: start must be earliest, latest, or offsets"),
        ("thresholds = ['lag>x']", (), "a threshold must be quarantine>SHARE%/WINDOW or lag>LIMIT"),
        ("schemas = { a = 'none.json' }", (), "pipeline.toml: schemas: a: the schema none.json must be"),
    ],
)
def test_errors_name_the_file(runs: Runs, line: str, words: tuple[str, ...], message: str) -> None:
    """A wrong value of the file is named with it, in a run and when the file is checked."""
    path = runs.file(f"{line}\n")
    for more in ((), ("--print-options",)):
        done = runs.run(*BASE, "-b", "b:1", "--options", path, *words, *more)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr


# --- what is printed is what was passed -----------------------------------------------

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8)
NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
# The values of fields that have a rule of their own; a field without one has any of its type.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bootstrap_servers": st.sampled_from(["b:1", "b:1,c:2"]),
    "topics": st.lists(NAME, min_size=1, max_size=3),
    "topic_pattern": st.sampled_from(["a.*", "[ab]+", "("]),
    "out": st.sampled_from(["o", "s3a://bucket/x", "abfss://lake@me.dfs.core.windows.net/x"]),
    "checkpoint": st.sampled_from(["c", "file:///c"]),
    "table": st.sampled_from(["c.s.n", "s.`a b`.n"]),
    "tables": st.dictionaries(TEXT, NAME, max_size=3),
    "schemas": st.dictionaries(TEXT, st.just("order.json"), max_size=2),
    "schema_registry": st.just("http://127.0.0.1:1"),
    "deduplicate": st.sampled_from(["1h", "7 days", "x"]),
    "upsert": st.lists(st.sampled_from(["key", "subject"]), max_size=2, unique=True),
    "deleted": st.sampled_from(["op=d", "op=\u202e\x1b"]),
    "start": st.sampled_from(["latest", '{"t": {"0": 17}}']),
    "backfill": st.sampled_from(["0..17", "@2026-11-21T12:00:00Z..latest"]),
    "thresholds": st.lists(st.sampled_from(["lag>5m:end", "quarantine>5%/10m"]), max_size=2),
    "metrics_port": st.sampled_from(["0", "127.0.0.1:9", "all"]),
    "config": st.just("c.properties"),
    "profile": st.just("p"),
    "forget_topics": st.lists(NAME, max_size=2),
    "summary_json": st.just("-"),
}
HARMLESS = [
    "spark.driver.memory=2g",
    "spark.app.name=a \U000e0001\"b' \\",
    "kafka.max.poll.records=5",
    "security.protocol=SASL_PLAINTEXT",
    "sasl.username=u",
    "sasl.password@=secret",
    "schema.registry.basic.auth.user.info@=secret",
]
SECRETS = [
    f"sasl.password={SECRET}",
    f"spark.hadoop.fs.s3a.secret.key={SECRET}",
    f"spark.x=https://u:{SECRET}@h/",
    f"spark.driver.extraJavaOptions=-Dx.password={SECRET}",
]
SETTINGS = st.one_of(
    *(st.lists(st.sampled_from(pairs), max_size=4) for pairs in (HARMLESS, HARMLESS, HARMLESS + SECRETS))
)


def values_of(field: Field) -> st.SearchStrategy[Any]:
    if field.name in VALUES:
        return VALUES[field.name]
    if field.choices:
        return st.sampled_from(field.choices)
    if field.types == (bool,):
        return st.booleans()
    if field.types == (int,):
        return st.integers(1, 10**20)
    if field.types == (float,):
        return st.floats(0, 2e6)
    return {"list": st.lists(NAME, max_size=2), "table": st.dictionaries(TEXT, NAME)}.get(field.form, TEXT)


def words_of(field: Field, value: Any) -> list[str]:
    """Return the words of a command line that have a value."""
    if isinstance(value, bool):
        return [field.flag if value else field.flag.replace("--", "--no-", 1)]
    if isinstance(value, dict):
        value = [f"{name}={text}" for name, text in value.items()]
    return [f"{field.flag}={text}" for text in (value if isinstance(value, list) else [value])]


# Many options contradict each other.
LINES = st.lists(
    st.sampled_from([field for field in FIELDS if not field.option.of_settings]),
    max_size=5,
    unique_by=lambda field: field.name,
).flatmap(lambda fields: st.fixed_dictionaries({field.name: values_of(field) for field in fields}))


def check_line(runs: Runs, values: dict[str, Any], pairs: list[str]) -> None:
    """Check the law for a command line."""
    values = {"out": "o", "bootstrap_servers": "b:1", **values}
    if "topic_pattern" not in values:
        values = {"topics": ["t"], **values}
    words = [word for field in FIELDS if field.name in values for word in words_of(field, values[field.name])]
    words += [word for pair in pairs for word in ("-X", pair)]
    printed = runs.run(*words, "--print-options")
    assert SECRET not in printed.output
    wanted = runs.options(*words)
    last = {pair.partition("=")[0].rstrip("@"): pair for pair in pairs}
    if any(SECRET in pair for pair in last.values()):
        assert (printed.exit_code, printed.stdout) == (2, "")
        assert "may be a secret, and is not printed" in printed.stderr
        return
    if isinstance(wanted, str) and printed.exit_code:
        assert printed.stderr == wanted
        return
    assert printed.exit_code == 0, printed.stderr
    assert tomllib.loads(printed.stdout)
    path = runs.file(printed.stdout)
    assert runs.options("--options", path) == wanted
    assert runs.run("--options", path, "--print-options").stdout == printed.stdout


def test_the_same_of_two_mistakes_is_named(runs: Runs) -> None:
    """A registry, whose settings are not read to print options, is checked last."""
    values = {"backfill": "0..17", "group": "g", "topic_pattern": "a.*"}
    check_line(runs, values, ["schema.registry.basic.auth.user.info@=secret"])


@pytest.fixture
def places(runs: Runs, monkeypatch) -> None:
    """A profile, a file of settings and an environment that have settings, too."""
    (runs.folder / "profiles.toml").write_text(f'[p]\nsasl.password = {{ file = "{runs.folder}/secret" }}\n')
    (runs.folder / "c.properties").write_text("sasl.username=of-config\nsasl.password@=secret\n")
    monkeypatch.setenv("CE_KAFKA_PROFILES", str(runs.folder / "profiles.toml"))
    monkeypatch.setenv("CE_KAFKA_SPARK_APP_NAME", "of the environment")
    monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", SECRET)


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize(
    "count", [100, pytest.param(2_000, marks=[pytest.mark.release, pytest.mark.timeout(900)])]
)
def test_what_is_printed_is_what_was_passed(runs: Runs, count: int) -> None:
    """Printed and read again, options are the same, and wrong ones are the same error; none is a secret."""

    @settings(max_examples=scaled(count))
    @given(LINES, SETTINGS)
    def check(values: dict[str, Any], pairs: list[str]) -> None:
        check_line(runs, values, pairs)

    check()
