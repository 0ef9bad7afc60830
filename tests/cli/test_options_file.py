"""A file of options is read whole or refused in one sentence with the file and the key."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_kafka.cli.commands._pipeline_options import FIELDS
from cloudevents_kafka.cli.kafka.references import Reference
from cloudevents_kafka.cli.options_file import read_options, resolve, to_toml
from cloudevents_kafka.cli.terminal.errors import BadUsage
from tests.support.strategies import scaled

SECRET = "hunter2-hunter2"


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text: str, path: str = "p.toml") -> dict[str, object]:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, "utf-8")
    return read_options(path, FIELDS, {"mode": "mode was removed. Do this."})


WRONG = [
    ("topiks = ['a']", "p.toml: 'topiks' is not an option; did you mean 'topics'?"),
    ("route = { a = 'b' }", "p.toml: 'route' is not an option; in a file, its name is 'tables'"),
    ("spark-log = 'x'", "p.toml: 'spark-log' is not an option; in a file, its name is 'log'"),
    ("zzzz = 1", "p.toml: 'zzzz' is not an option; see --print-options for their names"),
    ("conf = {}", "; write a setting of -X into the table [settings]"),
    ("'sasl.username' = 'u'", "; write a setting of -X into the table [settings]"),
    ("mode = 'binary'", "p.toml: mode was removed. Do this."),
    ("topics = 'a'", "p.toml: topics must be a list of texts, got 'a'"),
    ("topics = ['a', 1]", "p.toml: topics must be a list of texts, got a list of 2"),
    ("once = 'yes'", "p.toml: once must be true or false, got 'yes'"),
    ("once = 1", "p.toml: once must be true or false, got 1"),
    ("max_records = 1.5", "p.toml: max_records must be a whole number, got 1.5"),
    ("max_records = true", "p.toml: max_records must be a whole number, got True"),
    ("interval = '5s'", "p.toml: interval must be a number, got '5s'"),
    ("metrics_port = 1.5", "p.toml: metrics_port must be a whole number or text, got 1.5"),
    ("out = 2026-11-21", "p.toml: out must be text, got datetime.date(2026, 11, 21)"),
    ("out = { path = 'x' }", "p.toml: out must be text, got a dict of 1"),
    (
        "tables = ['a=b']",
        'tables must be a table of texts, such as "com.example.order.*" = "orders", got a list',
    ),
    ("[tables]\nonce = true", "p.toml: tables must be a table of texts"),
    ("settings = 1", "p.toml, settings must be a table of names and values, got 1"),
    ("[settings]\nout = 'x'", "p.toml, settings: out is an option; write it before the first [table]"),
    ("[settings]\nretries = [1]", "p.toml, settings: retries must be text, a number or a boolean"),
    ("[settings]\nerror_cb = 'x'", "is a Python function and cannot be set here"),
    (
        f"[settings]\nsasl.password = '{SECRET}'",
        "p.toml, settings: sasl.password may be a secret: refer to it",
    ),
    (
        f"[settings]\nspark.x = 'https://u:{SECRET}@h'",
        "p.toml, settings: spark.x may be a secret: refer to it",
    ),
    (
        f"schema_registry = 'https://u:{SECRET}@h'",
        "p.toml: schema_registry may have a secret: refer to it, {",
    ),
    ("topics = [", "p.toml must be TOML: Invalid value (at end of document)"),
    ("out = 'a'\nto = x\n", "p.toml must be TOML: Invalid value (at line 2, column 6)"),
    ("a = " + "[" * 100_000, "p.toml must be TOML: its brackets are nested too deeply"),
    (None, "--options: cannot read none.toml: No such file or directory"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[str(text)[:30] for text, _ in WRONG])
def test_wrong_files(text, message):
    """The error has the file, the key, the rule, what was found, and a name that is near; no secret."""
    with pytest.raises(BadUsage) as caught:
        read_options("none.toml", FIELDS, {}) if text is None else read(text)
    assert message in caught.value.message
    assert SECRET not in caught.value.message
    assert "\n" not in caught.value.message


def test_what_is_read_is_relative_to_the_file():
    """Schemas, a file of settings and references are next to the file; what is written is not."""
    found = read(
        """
        out = "lake"
        config = "c.properties"
        metrics_file = "m.prom"
        group = { file = "group" }
        schemas = { "a" = "schemas/a.json", "b" = "/b.json", "c" = "~/c.json" }
        [settings]
        sasl.password = { file = "secret" }
        sasl.username = { env = "USER" }
        ssl.ca.location = "ca.pem"
        """,
        "etc/orders/p.toml",
    )
    assert found == {
        "out": "lake",
        "config": "etc/orders/c.properties",
        "metrics_file": "m.prom",
        "group": Reference("file", "etc/orders/group"),
        "schemas": {"a": "etc/orders/schemas/a.json", "b": "/b.json", "c": "~/c.json"},
        "settings": {
            "sasl.password": Reference("file", "etc/orders/secret"),
            "sasl.username": Reference("env", "USER"),
            "ssl.ca.location": "ca.pem",
        },
    }


def test_references():
    """A single value may be in a file or a variable: text, a number or a flag; an error does not quote it."""
    found = read("out = {env='OUT'}\nmax_records = {env='MOST'}\nonce = {env='ONCE'}\ninterval = {file='i'}")
    Path("i").write_text("2.5\n")
    there = {"OUT": "s3a://b/x", "MOST": "5000", "ONCE": "true"}
    assert resolve(found, FIELDS, "p.toml", there) == {
        "out": "s3a://b/x",
        "max_records": 5000,
        "once": True,
        "interval": 2.5,
    }
    for changed, message in [
        (
            {"MOST": SECRET},
            "p.toml: max_records must be a whole number, but its reference contains other text",
        ),
        ({"ONCE": "1"}, "p.toml: once must be true or false, but its reference contains other text"),
    ]:
        with pytest.raises(BadUsage) as caught:
            resolve(found, FIELDS, "p.toml", {**there, **changed})
        assert caught.value.message == message
    with pytest.raises(BadUsage, match=r"p\.toml: the environment must have the variable that out names"):
        resolve(found, FIELDS, "p.toml", {})
    Path("i").unlink()
    with pytest.raises(BadUsage, match=r"p\.toml: interval: cannot read the file that it names: No such"):
        resolve(found, FIELDS, "p.toml", there)


def test_what_is_printed():
    """A printed file has the options in their order, references on one line, and no control characters."""
    values = {
        "settings": {"sasl.password": Reference("env", "PASSWORD"), "spark.driver.memory": "2g"},
        "quiet": True,
        "tables": {"b.*": "b", "a": "a\u202e\x1b"},
        "topics": ["t", "u"],
        "interval": 5.0,
    }
    assert to_toml(values, FIELDS) == (
        'topics = ["t", "u"]\n'
        "interval = 5.0\n"
        "quiet = true\n"
        "\n"
        "[tables]\n"
        '"b.*" = "b"\n'
        'a = "a\\U0000202E\\u001b"\n'
        "\n"
        "[settings]\n"
        '"sasl.password" = {env = "PASSWORD"}\n'
        '"spark.driver.memory" = "2g"\n'
    )
    assert to_toml({}, FIELDS) == ""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"settings": {"sasl.password": SECRET}},
            "-X: sasl.password may be a secret, and is not printed: pass sasl.",
        ),
        (
            {"out": f"https://u:{SECRET}@h/x"},
            "--out may have a secret, and is not printed: write out into the file",
        ),
        ({"log": os.fsdecode(b"\xff")}, "--spark-log must be UTF-8, like all text in an options file"),
    ],
)
def test_what_is_not_printed(values, message):
    """What may be a secret, or is not text, is refused with the way to write it."""
    with pytest.raises(BadUsage) as caught:
        to_toml(values, FIELDS)
    assert message in caught.value.message
    assert SECRET not in caught.value.message


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
ANY = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.datetimes(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXT, values, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([*(field.name for field in FIELDS), "settings", "mode", "route"]) | TEXT


@settings(max_examples=scaled(100))
@given(st.dictionaries(KEYS, ANY, max_size=3))
def test_any_file_is_read_or_refused(values):
    """Of any TOML the options are read, and are the same when they are printed and read again, or refused."""
    text = tomlkit.dumps(values)
    try:
        found, refusal = read(text), ""
    except BadUsage as error:
        found, refusal = {}, error.message
    assert re.match(r"p\.toml(, settings)?(: | must be )|$", refusal)
    printed = to_toml(found, FIELDS)
    assert read(printed) == found
    assert to_toml(read(printed), FIELDS) == printed


def test_containers_of_azure_are_no_logins():
    """The name of a container in a URL of Azure is not taken for a login; a password is."""
    out = "abfss://lake@me.dfs.core.windows.net/orders"
    assert read(f'out = "{out}"') == {"out": out}
    with pytest.raises(BadUsage, match="may have a secret"):
        read(f'out = "abfss://lake:{SECRET}@me.dfs.core.windows.net/orders"')
