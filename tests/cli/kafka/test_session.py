"""A session with a cluster: its errors and their advice."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from cloudevents_kafka.cli.kafka.session import BrokerSession, is_transient
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts
from tests.support.cases import each

DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down")
REFUSED = KafkaError(KafkaError._TRANSPORT, "connection refused")


def session_with(on_lost=lambda: None, **settings: str) -> BrokerSession:
    sources = (("test", {"bootstrap.servers": "h:1", **settings}),)
    return BrokerSession(Settings(sources), 1.5, Interrupts(), on_lost)


ADVICE = [
    (KafkaError._AUTHENTICATION, "check sasl.username"),
    (KafkaError.SASL_AUTHENTICATION_FAILED, "check sasl.username"),
    (KafkaError._SSL, "ssl.ca.location"),
    (KafkaError.TOPIC_AUTHORIZATION_FAILED, "ask for this permission"),
    (KafkaError._RESOLVE, "check the host name in -b"),
    (KafkaError._TRANSPORT, "that a broker listens there"),
    (KafkaError._TIMED_OUT, "that a broker listens there"),
    (KafkaError.INVALID_MSG, "the error is INVALID_MSG"),
]


@each(("code", "advice"), ADVICE)
def test_failures_have_advice(code, advice):
    """A failure has the address, the cause without secrets, and what to check."""
    session = session_with(**{"sasl.password": "hunter22"})
    message = session.failure("failed", KafkaError(code, "because of hunter22")).message
    assert message.startswith("broker h:1 failed: because of ********; ")
    assert advice in message


def test_a_timeout_has_the_last_error():
    """The error of a timeout has the last error of the client: the reason, not that all brokers are down."""
    session = session_with()
    assert session.no_answer().message.startswith("broker h:1 did not answer within 1.5 s; check -b")
    for error in (REFUSED, DOWN):
        session.on_error(error)
    assert "within 1.5 s: connection refused; " in session.no_answer().message


def test_permanent_errors_end_waiting():
    """A refused login is raised by the next check; an unreachable broker is not."""
    session = session_with()
    session.on_error(REFUSED)
    session.check()
    session.on_error(KafkaError(KafkaError._AUTHENTICATION, "no"))
    with pytest.raises(BrokerFailure, match="refuses: no"):
        session.check()


def test_lost_brokers_are_reported_once():
    """Lost brokers are reported once, and again only after a broker was reached."""
    reports: list[str] = []
    session = session_with(lambda: reports.append("lost"))
    for _ in range(2):
        session.on_error(DOWN)
    assert reports == ["lost"]
    session.mark_connected()
    session.on_error(DOWN)
    assert reports == ["lost", "lost"]


def test_errors_of_topics():
    """A missing topic and a bad name are bad usage, other errors are failures of the broker."""
    session = session_with()
    for code, kind, text in (
        (KafkaError.UNKNOWN_TOPIC_OR_PART, BadUsage, "has no topic 't'"),
        (KafkaError._UNKNOWN_TOPIC, BadUsage, "has no topic 't'"),
        (KafkaError.TOPIC_EXCEPTION, BadUsage, "got 't'"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, BrokerFailure, "refuses topic 't'"),
    ):
        error = session.topic_error(KafkaError(code, "why"), "t")
        assert type(error) is kind
        assert text in error.message


def test_a_topic_with_the_name_of_a_secret_hides_no_reason():
    """The reason why a topic is refused is shown, also of a topic with the name of a secret."""
    error = session_with().topic_error(
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "why"), "auth-tokens"
    )
    assert (
        "refuses topic 'auth-tokens' to this client: why; ask for this permission" in error.format_message()
    )


def test_transient_errors():
    """A missing leader and a lost connection may end by themselves, a missing permission does not."""
    assert is_transient(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    assert is_transient(REFUSED)
    assert not is_transient(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def test_settings_that_the_client_refuses():
    """Settings that the client refuses are bad usage, without their secrets; so is a missing address."""
    with pytest.raises(BadUsage, match="does not accept these settings: ") as caught:
        session_with(**{"security.protocol": "hunter22"}).create(Producer)
    assert "hunter22" not in caught.value.message
    with pytest.raises(BadUsage, match="the broker is missing"):
        session_with(**{"bootstrap.servers": ""})


def test_exceptions_of_the_client():
    """An exception of the client becomes a failure of the broker."""
    with (
        pytest.raises(BrokerFailure, match="broker h:1 failed: connection refused"),
        session_with().client_errors(),
    ):
        raise KafkaException(REFUSED)
