"""The page about a file of options shows what the command prints and reads, and who wins."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cloudevents_kafka.cli.app import app
from tests.docs import pages

SECTION = (pages.DOCS / "how-to" / "land_with_spark.md").read_text("utf-8")
SECTION = SECTION.partition("\n## A file of options\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
SOURCES = ("the command line", "the options file", "`CE_KAFKA_…`", "`--config`", "`--profile`")
"""Where options and settings are; the first wins, as tests/cli/commands/test_pipeline_options.py shows."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], prog_name="cloudevents-kafka")


def test_what_the_command_prints() -> None:
    """The command of the page prints the file of the page, and printing it again changes nothing."""
    (_, commands), (_, shown), _ = BLOCKS
    first = shlex.split(commands.replace("\\\n", " ").partition(" > ")[0])
    assert first[0] == "cloudevents-kafka"
    printed = run(*first[1:])
    assert (printed.exit_code, printed.stdout) == (0, shown)
    Path("pipeline.toml").write_text(shown)
    assert run("pipeline", "--options", "pipeline.toml", "--print-options").stdout == shown


def test_the_other_file_is_checked_without_its_secrets() -> None:
    """The file with references is right, on a machine that has neither the file nor the variable of one."""
    Path("schemas").mkdir()
    Path("schemas/order.json").write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    Path("orders.toml").write_text(BLOCKS[2][1])
    done = run("pipeline", "--options", "orders.toml", "--print-options")
    assert done.exit_code == 0, done.stderr
    assert '"sasl.password" = {file = "/run/secrets/kafka"}' in done.stdout
    assert 'out = {env = "ORDERS_LAKE"}' in done.stdout
    wrong = run("pipeline", "--options", "orders.toml", "--print-options", "--group", "")
    assert "group must be the name of a consumer group" in wrong.stderr
    refused = run("pipeline", "--options", "orders.toml")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "the environment must have the variable that out names" in refused.stderr


def test_who_wins_is_one_line() -> None:
    """The line has all sources, in the order of the settings' own page and of the test that proves it."""
    line = re.search(r"^\* \*\*Precedence[^:]*:\*\* (.+\n.+)$", SECTION, re.MULTILINE)
    assert line is not None
    places = [line[1].find(source) for source in SOURCES]
    assert places == sorted(places)
    assert -1 not in places
