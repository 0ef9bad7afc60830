"""How the live commands reach a broker: options, credentials, a capture, and what errors mean."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from cloudevents_kafka.cli.kafka.options import timeout_option
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerTrouble, Failure
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.redaction import has_credentials

if TYPE_CHECKING:
    from cloudevents_kafka.protocol import Client, Plain, ProtocolError, Scram

PASSWORD_VARIABLE: Final = "CE_KAFKA_SASL_PASSWORD"  # noqa: S105  # its name, not a password
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_OPTIONS: Final = (
    click.option("--tls", is_flag=True, help="Connect by TLS."),
    click.option(
        "--cafile", type=FILE, metavar="FILE", help="Who may sign the broker's certificate, in PEM; with TLS."
    ),
    click.option("--user", metavar="NAME", help=f"Log in; the password: {PASSWORD_VARIABLE}, or a prompt."),
    click.option(
        "--mechanism",
        type=click.Choice(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], case_sensitive=False),
        help="How to log in; SCRAM-SHA-256 if not said.",
    ),
    click.option(
        "--trace", type=FILE, metavar="FILE", help="Append all frames to a capture, for protocol decode."
    ),
    timeout_option,
)


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """The way to a broker, as the options say."""

    broker: str
    tls: bool
    cafile: str | None
    user: str | None
    mechanism: str | None
    trace: str | None
    timeout: float


def live_options(command: _Decorated) -> _Decorated:
    """Add the options of all commands that talk to a broker, and the broker's address."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("broker", metavar="BROKER")(command)


def take_way(options: dict[str, Any]) -> Way:
    """Take what `live_options` added out of a command's options."""
    return Way(**{name: options.pop(name) for name in Way.__struct_fields__})


@contextmanager
def reaching(way: Way) -> Iterator[Client]:
    """Give a client that goes that way; its errors become the command's."""
    from cloudevents_kafka.protocol import Client

    if has_credentials(way.broker):
        raise BadUsage("BROKER: an address is host:port, without a user or a password; log in by --user")
    sasl, tls = _sasl(way), _tls(way)
    with ExitStack() as stack:
        trace = None
        if way.trace is not None:
            trace = stack.enter_context(_opened(way.trace))
        try:
            client = Client(way.broker, timeout=way.timeout, tls=tls, sasl=sasl, trace=trace)
        except ValueError as error:
            raise BadUsage(f"BROKER: {error}") from None
        stack.enter_context(client)
        with broker_errors(way):
            yield client


@contextmanager
def broker_errors(way: Way) -> Iterator[None]:
    """Turn the client's errors into the command's."""
    from cloudevents_kafka.protocol import ProtocolError

    try:
        yield
    except ProtocolError as error:
        raise failure(error, way) from None


def failure(error: ProtocolError, way: Way) -> Failure:
    """Say what an error means to a user, and what to do."""
    from cloudevents_kafka.protocol import (
        AuthenticationFailed,
        BrokerError,
        DeadlineExceeded,
        Disconnected,
        Malformed,
        Truncated,
        Unencodable,
    )
    from cloudevents_kafka.protocol.error_codes import ErrorCode

    cause = error.__cause__ if isinstance(error.__cause__, BrokerError) else error
    text = f"broker {way.broker}: {error}"
    if isinstance(cause, BrokerError) and cause.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return BadUsage(f"{text}; check TOPIC and its partition")
    if isinstance(error, Unencodable) or _lacks_package(error):
        return BadUsage(text)
    if isinstance(error, Malformed | Truncated):
        return BadData(f"{text}; see what it sent: --trace FILE, then protocol decode FILE")
    if isinstance(error, AuthenticationFailed):
        return BrokerTrouble(f"{text}; check --user, --mechanism and the password")
    if isinstance(error, Disconnected | DeadlineExceeded) and cause is error:
        return BrokerTrouble(f"{text}; check BROKER, that a broker listens there, --tls and --user")
    return BrokerTrouble(text)


def _lacks_package(error: BaseException | None) -> bool:
    """Tell whether an error came of a package that is not installed; then it says how to get it."""
    return error is not None and (isinstance(error, ImportError) or _lacks_package(error.__cause__))


def _opened(path: str) -> Any:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise BadUsage(f"--trace: cannot write {path}: {error.strerror}") from None


def _tls(way: Way) -> ssl.SSLContext | bool:
    if way.cafile is None:
        return way.tls
    try:
        return ssl.create_default_context(cafile=way.cafile)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise BadUsage(f"--cafile: cannot read certificates from {way.cafile}: {reason}") from None


def _sasl(way: Way) -> Plain | Scram | None:
    from cloudevents_kafka.protocol import Plain, Scram

    if way.user is None:
        if way.mechanism is not None:
            raise BadUsage("--mechanism without --user: say who logs in")
        return None
    password = _password(way.user)
    if way.mechanism == "PLAIN":
        return Plain(way.user, password)
    return Scram(way.user, password, way.mechanism or "SCRAM-SHA-256")  # type: ignore[arg-type]  # click checked it


def _password(user: str) -> str:
    """Take the password from the environment, or ask for it; it is never shown."""
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is not None:
        return given
    name = user.partition(":")[0]  # as for curl, a password may stand behind it
    if not sys.stdin.isatty():
        raise BadUsage(f"no password for --user {name}: set {PASSWORD_VARIABLE}, or run this on a terminal")
    prompted: str = click.prompt(f"password of {name}", hide_input=True, err=True)
    return prompted


def check_partition(topic: str, partition: int, partitions: Sequence[int]) -> None:
    """Refuse a partition that a topic does not have."""
    if partition not in partitions:
        there = ", ".join(map(str, partitions))
        raise BadUsage(f"topic {topic!r} has no partition {partition}; it has {there}")
