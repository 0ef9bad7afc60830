"""No output of the command line has what was given for a secret, however it was given."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cloudevents_kafka.cli.app import app

# A secret begins, goes on and ends so: none of the three may come out, whatever stands between them.
BEGIN, MIDDLE, END = "Qa7x", "Xv9y", "Jk3z"
_CHARACTERS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r\n", exclude_categories=["Cs"])
    | st.sampled_from("/@:?#,&=;%$~\\'\" "),
    max_size=8,
)
SECRETS = st.builds(lambda a, b: f"{BEGIN}{a}{MIDDLE}{b}{END}", _CHARACTERS, _CHARACTERS)
NAMES = (
    "sasl.password",
    "sasl.passwd",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.key.location",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "basic.auth.user.info",
    "acks",
    "sasl.mechanism",
    "security.protocol",
    "nothing.known",
)
URL = "sasl.oauthbearer.token.endpoint.url"


class Given(NamedTuple):
    """What goes to the command line: arguments, environment, and lines of a file for --config."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    config: str | None = None


Way = Callable[[str, str], Given]
WAYS: dict[str, Way] = {
    "-X": lambda name, secret: Given(("-X", f"{name}={secret}")),
    "-X, as the name of a file": lambda name, secret: Given(("-X", f"{name}@={secret}")),
    "-X, a name forgotten": lambda _, secret: Given(("-X", secret)),
    "-X, base64": lambda _, secret: Given(("-X", f"{secret}=")),
    "-X, a blank for =": lambda name, secret: Given(("-X", name, secret)),
    "-X, forgotten": lambda name, secret: Given((f"{name}={secret}",)),
    "-X, twice": lambda name, secret: Given(("-X", f"{name}={secret}", "-X", "sasl.password")),
    "environment": lambda name, secret: Given(env={_variable(name): secret}),
    "environment, as the name of a file": lambda name, secret: Given(env={f"{_variable(name)}_FILE": secret}),
    "file": lambda name, secret: Given(config=f"{name}={secret}"),
    "file, as the name of a file": lambda name, secret: Given(config=f"{name}@={secret}"),
    "file, a name forgotten": lambda _, secret: Given(config=f"acks=1\n{secret}"),
    "address": lambda _, secret: Given(("-b", f"me:{secret}@127.0.0.1:1")),
    "address with a scheme": lambda _, secret: Given(
        ("-b", f"SASL_SSL://me:{secret}@127.0.0.1:1,127.0.0.1:2")
    ),
    "URL": lambda _, secret: Given(("-X", f"{URL}=https://me:{secret}@127.0.0.1/")),
    "URL's query": lambda _, secret: Given(("-X", f"{URL}=https://127.0.0.1/?client_secret={secret}")),
}
COMMANDS = {
    "show": ("consume", "-b", "127.0.0.1:1", "-t", "t", "--show-config"),
    "consume": ("consume", "-b", "127.0.0.1:1", "-t", "t", "--timeout", "0.01"),
    "produce": (
        "produce",
        "-b",
        "127.0.0.1:1",
        "-t",
        "t",
        "--timeout",
        "0.01",
        "--source",
        "/s",
        "--type",
        "t",
    ),
}


def _variable(name: str) -> str:
    return "CE_KAFKA_" + name.upper().replace(".", "_")


def output(command: tuple[str, ...], given: Given) -> str:
    """Run a command; return all that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        args = [*command, *given.args]
        if given.config is not None:
            file = Path(folder) / "c.properties"
            file.write_text(given.config, encoding="utf-8")
            args += ["--config", str(file)]
        done = CliRunner().invoke(app, args, env=given.env, prog_name="cloudevents-kafka")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    return done.output


def shows_nothing(printed: str) -> None:
    for part in (BEGIN, MIDDLE, END):
        assert part not in printed
        assert part.lower() not in printed.lower()


@pytest.mark.parametrize("way", WAYS)
@given(secret=SECRETS, name=st.sampled_from(NAMES))
@settings(max_examples=12, deadline=None)
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.password")
@example(f"{BEGIN}{MIDDLE}{END}", "sasl.password")
def test_nothing_is_shown(way, secret, name):
    """Whichever way a secret is given, rightly or wrongly, --show-config prints no part of it."""
    shows_nothing(output(COMMANDS["show"], WAYS[way](name, secret)))


@pytest.mark.parametrize("way", WAYS)
@given(secret=SECRETS, name=st.sampled_from(NAMES))
@settings(max_examples=2, deadline=None)
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.password")
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.mechanism")
def test_no_error_shows_it(way, secret, name):
    """Neither what the client says of its settings, nor that no broker answers, has a part of it."""
    shows_nothing(output(COMMANDS["consume"], WAYS[way](name, secret)))


@pytest.mark.parametrize("way", WAYS)
def test_produce_shows_nothing(way):
    """The same goes for produce, which takes files beside its options."""
    shows_nothing(output(COMMANDS["produce"], WAYS[way]("sasl.password", f"{BEGIN}@/:{MIDDLE} {END}")))


@pytest.mark.parametrize("way", [way for way in WAYS if "address" not in way])
@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.location", "kafka.x", "nothing", "sasl.mechanism"]
)
def test_pipeline_shows_nothing(way, name, tmp_path):
    """The pipeline says what it does not take without a part of it; a blank stops it before Spark starts."""
    command = ("pipeline", "-b", "", "-t", "t", "-o", str(tmp_path / "out"), "--once")
    shows_nothing(output(command, WAYS[way](name, f"{BEGIN}@/:{MIDDLE} {END}")))


def test_what_protocol_commands_show():
    """An address and a user of the protocol commands, with a password behind them, are not repeated."""
    secret = f"{BEGIN}{MIDDLE}{END}"
    for args in (
        ("127.0.0.1:1", "--user", f"me:{secret}"),
        (f"me:{secret}@127.0.0.1:1",),
        ("127.0.0.1:1", secret),
        ("127.0.0.1:1", "-X", f"sasl.password={secret}"),
    ):
        shows_nothing(output(("protocol", "api-versions"), Given(args)))
