"""The command line as a whole: imports, help and exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import COMMANDS, LazyGroup
from cloudevents_kafka.cli.app import app as root
from cloudevents_kafka.cli.commands.protocol import COMMANDS as PROTOCOL_COMMANDS
from cloudevents_kafka.cli.commands.table import COMMANDS as TABLE_COMMANDS
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.signals import Interrupted
from cloudevents_kafka.clients.producer import DeliveryError
from cloudevents_kafka.errors import EncodeError
from cloudevents_kafka.jvm import NoJars
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.testing import BrokerFailed
from tests.support.cases import each
from tests.support.samples import one_in

HEAVY = ("confluent_kafka", "pyspark", "fastavro", "pandas", "pyarrow", "cloudevents")
LOADED = """
import sys
from cloudevents_kafka.cli import main
sys.argv = ["cloudevents-kafka", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
print(*sorted(name for name in sys.modules if name in {heavy!r}), file=sys.stderr)
"""


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


WORDS = [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS)]
WORDS += [["table", name, "--help"] for name in TABLE_COMMANDS]


@pytest.mark.parametrize("arguments", one_in(4, WORDS))
def test_help_loads_nothing_heavy(arguments):
    """Help loads neither a Kafka client nor Spark nor Avro."""
    result = python(LOADED.format(heavy=HEAVY), *arguments)
    assert (result.returncode, result.stderr.strip()) == (0, "")
    assert result.stdout


@pytest.mark.parametrize("name", one_in(4, [None, *PROTOCOL_COMMANDS]))
def test_help_of_protocol_loads_no_client(name):
    """Help of the protocol commands loads no other client; their list does not load the codec either."""
    unwanted = ("confluent_kafka", "cramjam", *([] if name else ["cloudevents_kafka.protocol"]))
    script = LOADED.replace(" in {heavy!r}", f".startswith({unwanted!r})")
    result = python(script, "protocol", *filter(None, [name]), "--help")
    assert (result.returncode, result.stderr.strip()) == (0, "")
    assert result.stdout


def test_the_list_of_commands_loads_none():
    """The list of commands is printed without loading a command."""
    script = LOADED.replace("in {heavy!r}", 'and name.startswith("cloudevents_kafka.cli.")')
    result = python(script, "--help")
    assert result.returncode == 0
    for name in COMMANDS:
        assert name in result.stdout
        assert f"cloudevents_kafka.cli.commands.{name}" not in result.stderr.split()


def test_without_click():
    """Without click the error has the command to install it; exit code 2."""
    result = python("import sys; sys.modules['click'] = None\nfrom cloudevents_kafka.cli import main\nmain()")
    assert result.returncode == 2
    assert result.stderr == f"cloudevents-kafka needs click: {pip_install('cli')}\n"
    assert result.stdout == ""


def test_as_a_module():
    """``python -m cloudevents_kafka`` runs the command line under its name."""
    result = subprocess.run(
        [sys.executable, "-m", "cloudevents_kafka", "nonsense"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert result.stderr.startswith("cloudevents-kafka: no such command")
    assert result.stdout == ""


USAGE = [
    (["consum"], "no such command 'consum'; did you mean 'consume'? See cloudevents-kafka --help"),
    (["groups", "billing"], "no such command 'billing'; pass a group by --group NAME; see"),
    (["produce", "-b", "h:1", "orders"], "FILES must exist, got orders; to send to a topic, pass -t TOPIC"),
    (
        ["protocol", "decod"],
        "no such command 'decod'; did you mean 'decode'? See cloudevents-kafka protocol --help",
    ),
    (
        ["consume", "--tpic"],
        "no such option '--tpic'; did you mean '--topic'",
    ),
    (["groups", "reset", "billing"], "; pass a topic by -t TOPIC, or a group by --group NAME; see"),
    (["pipeline", "orders", "out"], "; pass a topic by -t TOPIC, or a folder by --out DIR, or a group by"),
    (["protocol", "api-versions", "h:1"], "; pass a broker by -b HOST:PORT; see"),
    (["topics", "-t", "orders"], "no such option '-t'; write TOPIC without an option; see"),
    (["protocol", "fetch", "--topic", "a"], "no such option '--topic'; write TOPIC without an option; see"),
    (["protocol", "fetch", "a", "x"], "[PARTITION]': 'x' is not a valid integer range; see"),
    (["--nonsense"], "no such option '--nonsense'; see cloudevents-kafka --help"),
    (["doctor", "produc"], "got produc; did you mean 'produce'? See cloudevents-kafka doctor --help"),
    (["consume", "-n", "0"], "invalid value for '-n' / '--count': 0 is not in the range x>=1; see"),
    (
        ["consume"],
        "the topic is missing: pass -t TOPIC; the broker is missing: pass -b host:port, set CE_KAFKA_",
    ),
    (
        ["consume", "-t", "x", "-b", "http://a:1"],
        "a broker address must be host:port, such as localhost:9092, got",
    ),
]


@each(("arguments", "message"), USAGE, ids=[" ".join(case[0]) for case in USAGE])
def test_bad_usage_is_one_sentence(arguments, message):
    """Errors of usage are in the style of all others: one sentence, with near names and where help is."""
    result = CliRunner().invoke(root, arguments, prog_name="cloudevents-kafka")
    assert (result.exit_code, result.stdout) == (2, "")
    # Before click 8.4 an option has a colon in front of it, and no quotes.
    said = re.sub(r"option: (--\w+)", r"option '\1'", result.stderr)
    assert said.startswith("cloudevents-kafka: ")
    assert message in said
    assert said.count("\n") == 1


@each("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    """Click's completion scripts are printed."""
    script = "from cloudevents_kafka.cli import main\nmain()"
    env = {"_CLOUDEVENTS_KAFKA_COMPLETE": f"{shell}_source"}
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**env, "PATH": "/bin"},
    )
    assert "cloudevents-kafka" in result.stdout


ENDS = [
    (EncodeError("why"), 1, "cloudevents-kafka: why\n"),
    (BadUsage("why\x1b"), 2, "cloudevents-kafka: why\\x1b\n"),
    (DeliveryError("why"), 3, "cloudevents-kafka: why\n"),
    (NoJars(["a:b:1"], Path("jars"), "no network", "hint"), 3, "cloudevents-kafka: cannot fetch a:b:1"),
    (BrokerFailed("died", Path("log"), "tail"), 3, "cloudevents-kafka: died\n"),
    (KeyboardInterrupt(), 130, ""),
    (Interrupted(15), 143, ""),
    (BrokenPipeError(), 141, ""),
    (OSError(28, "why"), 2, "cloudevents-kafka: cannot write the output: why\n"),
    (FileNotFoundError(2, "why", "a\x1b"), 2, "cloudevents-kafka: a\\x1b: why\n"),
]


@each(("error", "code", "message"), ENDS, ids=lambda case: type(case).__name__)
def test_ends(error, code, message):
    """Each exception ends a command with its exit code and one message without a traceback."""

    @click.group(cls=LazyGroup, package="", summaries=COMMANDS)
    def app():
        pass

    @click.command()
    def broken():
        raise error

    app.get_command = lambda ctx, name: broken  # type: ignore[method-assign]
    result = CliRunner().invoke(app, ["demo"])
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith(message)
    assert bool(result.stderr) is bool(message)


ALL = [[], *([name] for name in COMMANDS), *(["protocol", name] for name in PROTOCOL_COMMANDS)]
ALL += [*(["table", name] for name in TABLE_COMMANDS), ["groups", "reset"]]


@each("width", [80, 120])
@each("words", ALL, ids=" ".join)
def test_help_fits_a_terminal(words, width):
    """Help fits 80 columns and 120, and nothing of it is cut."""
    result = CliRunner().invoke(root, [*words, "--help"], prog_name="cloudevents-kafka", terminal_width=width)
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == [] or width > 80
    assert "..." not in result.stdout.replace("[OPTIONS] COMMAND [ARGS]...", "").replace("]...", "")
