"""The connection to a broker: the command's options for it, the capture file, and the errors of the client.

The module `_login` reads the settings of the login.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
import msgspec

from cloudevents_kafka import protocol
from cloudevents_kafka.cli.commands.protocol._login import explain_refusal, read_login
from cloudevents_kafka.cli.kafka.session import ASK_FOR_PERMISSION, TopicNotAllowed
from cloudevents_kafka.cli.kafka.settings import Settings, kafka_options, pop_settings
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerFailure, CommandError
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.topics import MetadataResponse

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_trace_option: Final = click.option(
    "--trace", type=FILE, metavar="FILE", help="Append all frames to a capture file, for protocol decode."
)


class ConnectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options for a connection to a broker."""

    broker: str
    settings: Settings
    trace: str | None
    timeout: float


def connection_options(command: _Decorated) -> _Decorated:
    """Return a command with the options of a connection, which it receives as the argument ``connection``."""

    @wraps(command)
    def with_connection(*, trace: str | None, timeout: float, show_config: bool, **options: Any) -> Any:
        settings = pop_settings(options)
        settings.check(show=show_config)
        broker = settings.bootstrap_servers
        connection = ConnectionOptions(broker=broker, settings=settings, trace=trace, timeout=timeout)
        return command(connection=connection, **options)

    return cast("_Decorated", kafka_options(_trace_option(with_connection)))


@contextmanager
def connect(options: ConnectionOptions) -> Iterator[protocol.Client]:
    """Return a context manager for a client of the protocol; an error of the client ends the command."""
    login = read_login(options.settings, options.timeout)
    with ExitStack() as stack:
        trace = None if options.trace is None else stack.enter_context(_open_capture(options.trace))
        try:
            client = protocol.Client(
                options.broker, timeout=options.timeout, tls=login.tls, sasl=login.sasl, trace=trace
            )
        except ValueError as error:
            raise BadUsage(f"-b: {error}") from None
        stack.enter_context(client)
        try:
            client.api_versions()  # fails at once if nothing listens; other requests try again
            yield client
        except protocol.ProtocolError as error:
            raise command_error(error, options) from None


def topic_partitions(client: protocol.Client, options: ConnectionOptions, topic: str) -> list[int]:
    """Return the partitions of a topic, without creating the topic.

    Raises `BadUsage` if the topic does not exist, and `TopicNotAllowed` if the user is not allowed to
    describe the topic. If the topic does not exist, this function does not create the topic. First, the
    function requests the list of all topics. If this list does not contain the topic, the function requests
    the topic with the argument ``create=False``. Some brokers do not support a request for metadata with
    ``create=False``.
    """
    topics = {metadata.name: metadata for metadata in client.metadata().topics if metadata.name}
    if topic not in topics:
        with suppress(protocol.Unsupported):
            _check_allowed(client.metadata([topic], create=False), options)
        advice = near(topic, topics) or "; check TOPIC, and the permission to describe it"
        raise BadUsage(f"broker {options.broker} has no topic {topic!r}{advice}")
    return sorted(metadata.partition_index for metadata in topics[topic].partitions)


def _check_allowed(found: MetadataResponse, options: ConnectionOptions) -> None:
    """Raise `TopicNotAllowed` if the broker does not allow the user to describe the topic."""
    for topic in found.topics:
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            error = protocol.BrokerError(topic.error_code, f"topic {topic.name}")
            raise TopicNotAllowed(command_error(error, options).message)


def command_error(error: protocol.ProtocolError, options: ConnectionOptions) -> CommandError:
    """Return the error that ends the command, with advice for the user about what to check."""
    cause = error.__cause__ if isinstance(error.__cause__, protocol.BrokerError) else error
    text = f"broker {options.broker}: {error}"
    if isinstance(cause, protocol.BrokerError) and cause.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return BadUsage(f"{text}; check TOPIC and its partition")
    if isinstance(error, protocol.Unencodable) or _needs_package(error):
        return BadUsage(text)
    if isinstance(error, protocol.Malformed | protocol.Truncated):
        return BadData(f"{text}; to see the frames, use --trace FILE, then protocol decode FILE")
    if isinstance(error, protocol.AuthenticationFailed):
        return BrokerFailure(f"{text}; {explain_refusal(options.settings, text)}")
    if isinstance(error, protocol.Disconnected | protocol.DeadlineExceeded) and cause is error:
        return BrokerFailure(
            f"{text}; check -b, that a broker listens there, and security.protocol (--show-config)"
        )
    is_refused = isinstance(cause, protocol.BrokerError) and cause.name.endswith("AUTHORIZATION_FAILED")
    return BrokerFailure(f"{text}; {ASK_FOR_PERMISSION}" if is_refused else text)


def _needs_package(error: BaseException | None) -> bool:
    """Return whether a missing package is the cause of an error; the error's message says what to install."""
    return error is not None and (isinstance(error, ImportError) or _needs_package(error.__cause__))


def _open_capture(path: str) -> Any:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise BadUsage(f"--trace: cannot write {path}: {error.strerror}") from None
