"""Errors have position and rule, and one base class."""

from __future__ import annotations

from cloudevents_kafka.protocol import errors
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    Corrupt,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
    Truncated,
    Unencodable,
    Unsupported,
)
from tests.support.cases import each


def test_tree():
    """The tree in the module's docstring has each error in its place."""
    assert issubclass(Corrupt, Malformed)
    assert not issubclass(Truncated, Malformed)
    assert issubclass(Unencodable, ValueError)
    assert issubclass(DeadlineExceeded, TimeoutError)
    assert all(issubclass(kind, ClientError) for kind in (Disconnected, DeadlineExceeded, Unsupported))
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and kind.__module__ == errors.__name__:
            assert issubclass(kind, ProtocolError)
            assert f" {name}" in (errors.__doc__ or "")


@each(
    ("at", "path", "text"),
    [
        (None, "", "a rule"),
        (0, "", "at byte 0: a rule"),
        (7, "topics[0].name", "topics[0].name at byte 7: a rule"),
        (None, "topics", "topics: a rule"),
    ],
)
def test_malformed(at, path, text):
    """The text has the position before the rule, if it is known."""
    error = Malformed("a rule", at=at, path=path)
    assert (str(error), error.rule, error.at, error.path) == (text, "a rule", at, path)


def test_truncated():
    """`Truncated` has the least number of missing bytes."""
    error = Truncated(3, at=9, path="host")
    assert str(error) == "host at byte 9: 3 more bytes are needed"
    assert (error.missing, error.at, error.path) == (3, 9, "host")


def test_broker_error():
    """A broker's error has subject, name and meaning of the code, and the broker's message."""
    error = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "topic t, partition 0", "moved")
    assert error.retriable
    assert str(error).startswith("topic t, partition 0: NOT_LEADER_OR_FOLLOWER (6): ")
    assert str(error).endswith("; the broker says: moved")
    assert (error.code, error.subject, error.broker_message) == (6, "topic t, partition 0", "moved")


def test_a_hint_is_the_clients():
    """Words of the client are not ascribed to the broker."""
    error = BrokerError(3, "orders[7]", hint="the topic has the partitions 0 to 3")
    assert str(error).endswith("does not have the topic or partition; the topic has the partitions 0 to 3")
    assert error.broker_message is None


@each("code", [-2, 9999, 32767])
def test_unknown_code(code):
    """An unknown code has its number, and is not retriable."""
    error = BrokerError(code)
    assert str(error) == f"ERROR_{code} ({code}): the code is unknown"
    assert not error.retriable
