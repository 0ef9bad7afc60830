"""No output of the command line contains a secret, however it was passed."""

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
from tests.support.cases import each

# The parts of each secret; no output may contain one of them, with any text between them.
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


class Inputs(NamedTuple):
    """Arguments, environment, and the content of a file for --config."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    config: str | None = None


PassSecret = Callable[[str, str], Inputs]
WAYS: dict[str, PassSecret] = {
    "-X": lambda name, secret: Inputs(("-X", f"{name}={secret}")),
    "-X, as the name of a file": lambda name, secret: Inputs(("-X", f"{name}@={secret}")),
    "-X, a name forgotten": lambda _, secret: Inputs(("-X", secret)),
    "-X, base64": lambda _, secret: Inputs(("-X", f"{secret}=")),
    "-X, a blank for =": lambda name, secret: Inputs(("-X", name, secret)),
    "-X, forgotten": lambda name, secret: Inputs((f"{name}={secret}",)),
    "-X, twice": lambda name, secret: Inputs(("-X", f"{name}={secret}", "-X", "sasl.password")),
    "environment": lambda name, secret: Inputs(env={_variable(name): secret}),
    "environment, as the name of a file": lambda name, secret: Inputs(
        env={f"{_variable(name)}_FILE": secret}
    ),
    "file": lambda name, secret: Inputs(config=f"{name}={secret}"),
    "file, as the name of a file": lambda name, secret: Inputs(config=f"{name}@={secret}"),
    "file, a name forgotten": lambda _, secret: Inputs(config=f"acks=1\n{secret}"),
    "address": lambda _, secret: Inputs(("-b", f"me:{secret}@127.0.0.1:1")),
    "address with a scheme": lambda _, secret: Inputs(
        ("-b", f"SASL_SSL://me:{secret}@127.0.0.1:1,127.0.0.1:2")
    ),
    "URL": lambda _, secret: Inputs(("-X", f"{URL}=https://me:{secret}@127.0.0.1/")),
    "URL's query": lambda _, secret: Inputs(("-X", f"{URL}=https://127.0.0.1/?client_secret={secret}")),
}
COMMANDS = {
    "show": ("consume", "-b", "127.0.0.1:1", "-t", "t", "--show-config"),
    "consume": ("consume", "-b", "127.0.0.1:1", "-t", "t", "--timeout", "0.01"),
    "produce": ("produce", "-b", "127.0.0.1:1", "-t", "t", "--timeout", "0.01", "--source=/s", "--type=t"),
}


def _variable(name: str) -> str:
    return "CE_KAFKA_" + name.upper().replace(".", "_")


def output(command: tuple[str, ...], inputs: Inputs) -> str:
    """Run a command and return its output."""
    with tempfile.TemporaryDirectory() as folder:
        args = [*command, *inputs.args]
        if inputs.config is not None:
            file = Path(folder) / "c.properties"
            file.write_text(inputs.config, encoding="utf-8")
            args += ["--config", str(file)]
        result = CliRunner().invoke(app, args, env=inputs.env, prog_name="cloudevents-kafka")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.output.replace(folder, "FOLDER")  # whose random name may have any four letters


def assert_no_secret(printed: str) -> None:
    for part in (BEGIN, MIDDLE, END):
        assert part not in printed
        assert part.lower() not in printed.lower()


@pytest.mark.parametrize("way", WAYS)
@given(secret=SECRETS, name=st.sampled_from(NAMES))
@settings(max_examples=12, deadline=None)
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.password")
@example(f"{BEGIN}{MIDDLE}{END}", "sasl.password")
def test_show_config(way, secret, name):
    """--show-config prints no part of a secret that was passed in a right or a wrong way."""
    assert_no_secret(output(COMMANDS["show"], WAYS[way](name, secret)))


@pytest.mark.parametrize("way", WAYS)
@given(secret=SECRETS, name=st.sampled_from(NAMES))
@settings(max_examples=2, deadline=None)
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.password")
@example(f"{BEGIN}/@:{MIDDLE},{END}", "sasl.mechanism")
def test_errors_of_consume(way, secret, name):
    """Errors about settings and about an unreachable broker have no part of a secret."""
    assert_no_secret(output(COMMANDS["consume"], WAYS[way](name, secret)))


@each("way", WAYS)
def test_errors_of_produce(way):
    """Errors of produce, which also has files as arguments, have no part of a secret."""
    assert_no_secret(output(COMMANDS["produce"], WAYS[way]("sasl.password", f"{BEGIN}@/:{MIDDLE} {END}")))


@pytest.mark.parametrize("way", [way for way in WAYS if "address" not in way])
@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.location", "kafka.x", "nothing", "sasl.mechanism"]
)
def test_errors_of_pipeline(way, name, tmp_path):
    """Errors of the pipeline have no part of a secret; the empty -b stops it before Spark starts."""
    command = ("pipeline", "-b", "", "-t", "t", "-o", str(tmp_path / "out"), "--once")
    assert_no_secret(output(command, WAYS[way](name, f"{BEGIN}@/:{MIDDLE} {END}")))


def test_errors_of_protocol_commands():
    """Errors of the protocol commands do not quote a password in an address or a user name."""
    secret = f"{BEGIN}{MIDDLE}{END}"
    for args in (
        ("127.0.0.1:1", "-X", f"sasl.username=me:{secret}", "-X", "security.protocol=sasl_ssl"),
        (f"me:{secret}@127.0.0.1:1",),
        ("127.0.0.1:1", secret),
        ("127.0.0.1:1", "-X", f"sasl.password={secret}", "--timeout", "0.3"),
        ("127.0.0.1:1", "-X", f"sasl.passwort={secret}"),
        ("127.0.0.1:1", "-X", f"sasl.mechanism={secret}", "-X", "security.protocol=sasl_ssl"),
        ("127.0.0.1:1", "-X", f"security.protocol={secret}"),
    ):
        assert_no_secret(output(("protocol", "api-versions"), Inputs(args)))
