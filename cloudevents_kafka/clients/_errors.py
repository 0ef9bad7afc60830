"""The errors of a Kafka consumer: errors from which the client recovers automatically, and final errors.

A poll of librdkafka returns errors among the records. Some errors only report what the client is doing
already: it looks for a missing topic, connects to a broker again, or joins its group again. After an error of
this kind, further polls return records. Other errors require that the user does something: the user must
grant a right, change a setting, or seek.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from cloudevents_kafka.clients._protocols import FATAL, ClientError, PolledMessage
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.message_headers import name_error
from cloudevents_kafka.primitives.preview import preview

_log: Final = logging.getLogger("cloudevents_kafka.consumer")


MENDED: Final = frozenset(
    (
        *(3, 100, -188, -190),  # the topic or partition may appear, or appear again
        *(-147, -142, 22, 25, 27, 79, 110, 113),  # a late poll, or a rebalance: the client joins again
        # A broker, a leader or a coordinator is away: the client connects again, or finds another one.
        *(-195, -193, -187, -185, -180, -166, 5, 6, 7, 8, 9, 13, 14, 15, 16, 56, 74, 75, 78, 88, 89),
    )
)
"""The codes of the errors from which librdkafka recovers without help; `ConsumeError` lists their names."""

PARTITION_EOF: Final = -191
"""The code of librdkafka's message at the end of a partition, which ``enable.partition.eof`` requests."""

_MAX_POLL_EXCEEDED: Final = -147
_INTERVAL: Final = re.compile(r"poll interval \((\d+)ms\) exceeded")
# Only the text of librdkafka shows which error was fatal: FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
_SAME_INSTANCE: Final = re.compile(r"group\.instance\.id|instance ID is still used")
_HINTS: Final[dict[int | None, str]] = {
    FATAL: "close the consumer and create another",
    -140: "seek to an offset of the partition, or set auto.offset.reset",  # _AUTO_OFFSET_RESET
    10: "increase fetch.message.max.bytes and receive.message.max.bytes",  # MSG_SIZE_TOO_LARGE
    29: "grant the client READ and DESCRIBE on the topic",  # TOPIC_AUTHORIZATION_FAILED
    30: "grant the client READ on the group",  # GROUP_AUTHORIZATION_FAILED
}


class ConsumeError(CloudEventsKafkaError):
    """The Kafka client failed while polling or committing.

    ``error`` is the client's error. ``where`` names the topic, the partition and the offset, if they are
    known. ``final`` says whether the error is final, because the client does not recover from it without
    help.

    The client recovers from the following errors. A consumer without ``on_error`` logs such an error and
    continues to read:

    * a topic or partition that does not exist, perhaps because it is not created yet: UNKNOWN_TOPIC_OR_PART,
      UNKNOWN_TOPIC_ID, _UNKNOWN_TOPIC, _UNKNOWN_PARTITION;
    * a member that polled too late, or whose group has been rebalanced: _MAX_POLL_EXCEEDED, _ASSIGNMENT_LOST,
      ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, FENCED_MEMBER_EPOCH,
      STALE_MEMBER_EPOCH;
    * a broker, a leader or a coordinator that is away or busy: _TRANSPORT, _RESOLVE, _ALL_BROKERS_DOWN,
      _TIMED_OUT, _TIMED_OUT_QUEUE, _WAIT_COORD, LEADER_NOT_AVAILABLE, NOT_LEADER_FOR_PARTITION,
      REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE, REPLICA_NOT_AVAILABLE, NETWORK_EXCEPTION,
      COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, KAFKA_STORAGE_ERROR,
      FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE, UNSTABLE_OFFSET_COMMIT,
      THROTTLING_QUOTA_EXCEEDED;
    * other errors that the client marks as retriable.

    All other errors are final: missing rights (TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED), an
    offset that does not exist if ``auto.offset.reset`` is ``error`` (_AUTO_OFFSET_RESET), a record that is
    too large or corrupt (MSG_SIZE_TOO_LARGE, _BAD_MSG), a group with other settings
    (INCONSISTENT_GROUP_PROTOCOL), fatal errors (_FATAL), and errors that are not listed here. An error is
    fatal, for example, if another member has the same ``group.instance.id``. Reading can continue after all
    errors except fatal errors.

    Examples:
        >>> from cloudevents_kafka import ConsumeError, EventConsumer
        >>> consumer.fail_next("TOPIC_AUTHORIZATION_FAILED")
        >>> try:
        ...     EventConsumer(consumer).poll()
        ... except ConsumeError as error:
        ...     print(error.final, error.error.name())
        True TOPIC_AUTHORIZATION_FAILED
    """

    def __init__(self, error: object, where: str = "") -> None:
        super().__init__(error, where)
        self.error = error
        self.where = where

    @property
    def final(self) -> bool:
        """Whether the error is final, because the client does not recover from it without help."""
        error = self.error
        if not _is_of_client(error):
            return True
        return is_fatal(error) or not (error.code() in MENDED or error.retriable())

    def __str__(self) -> str:
        hint = _HINTS.get(self.error.code()) if _is_of_client(self.error) else None
        if is_fatal(self.error) and _SAME_INSTANCE.search(str(self.error)):
            hint = "another member of the group has the same group.instance.id: use a unique id"
        where = f"{self.where}: " if self.where else ""
        return f"{where}the consumer failed: {self.error}{f'; {hint}' if hint else ''}"


OnError = Callable[[ConsumeError], bool | None]
"""A function that takes an error and returns whether reading continues, or None for the default decision.

Examples:
    >>> from cloudevents_kafka import ConsumeError, EventConsumer
    >>> def read_on(error: ConsumeError) -> bool:
    ...     print(error)
    ...     return not error.final
    >>> events = EventConsumer(consumer, on_error=read_on)
"""


class Raised:
    """The first error that a callback of the client, such as ``stats_cb`` or ``on_assign``, has raised.

    If a callback raises an error while the client polls, confluent-kafka (2.16) raises this error instead of
    returning records. The client's position is then already after these records, so the records would be
    lost. Therefore, the functions that `keeping` returns raise no error, but store the error of the callback.
    The caller of the client first stores the records, and then raises this error.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def keeping(self, callback: Callable[..., object]) -> Callable[..., object]:
        """Return a function that calls ``callback`` and stores its error instead of raising it."""

        def call(*arguments: Any) -> object:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001  # a user's function may raise any error
                self.error = self.error or error
                return None

        return call

    def take(self) -> Exception | None:
        """Return the stored error of a callback, or None, and forget the error."""
        error, self.error = self.error, None
        return error

    def check(self) -> None:
        """Raise the stored error of a callback, if there is one, and forget the error."""
        if self.error is not None and (error := self.take()) is not None:
            raise error


def is_fatal(error: object) -> bool:
    """Return whether an error is fatal for the client; for an error of a poll, only its code shows this."""
    return _is_of_client(error) and (error.fatal() or error.code() == FATAL)


def _is_of_client(error: object) -> TypeGuard[ClientError]:
    return callable(getattr(error, "code", None))


def is_record(message: PolledMessage, on_error: OnError | None = None) -> bool:
    """Return whether a message is a record; return False for an error after which reading continues.

    Raises `ConsumeError` if the message is a final error. For errors that are not fatal, the function
    ``on_error`` may decide whether reading continues.
    """
    error = message.error()
    if error is None:
        return True
    if error.code() == PARTITION_EOF:
        return False
    failure = ConsumeError(error, _place_of(message))
    decision = None if on_error is None else on_error(failure)
    if is_fatal(error) or (failure.final if decision is None else not decision):
        raise failure
    if decision is None:
        _log.warning("%s; reading goes on", failure)
    return False


def explain_unread(error: SystemError) -> Exception:
    """Return a `ConsumeError` if instrumentation code could not read the header names of a polled record.

    Such code, which runs within a poll, fails if the name of a header is not UTF-8. In this case, the poll
    does not return the record, although the client's position is already after it. If ``error`` has another
    cause, the function returns ``error`` itself.
    """
    if (cause := name_error(error)) is None:
        return error
    return ConsumeError(
        f"header names must be UTF-8, got {preview(cause.object)} in a record whose headers were read within "
        "poll, as OpenTelemetry's instrumentation of confluent-kafka does; turn this instrumentation off, "
        "and use OpenTelemetryObserver, which leaves such records to on_failure"
    )


def poll_interval_of(message: PolledMessage) -> float | None:
    """Return ``max.poll.interval.ms`` in seconds if a message is the error of a late poll, otherwise None."""
    error = message.error()
    if error is None or error.code() != _MAX_POLL_EXCEEDED:
        return None
    found = _INTERVAL.search(str(error))
    return None if found is None else int(found[1]) / 1000


def _place_of(message: PolledMessage) -> str:
    """Return the topic of an error; if the error is about a record, also its partition and offset."""
    topic, offset = message.topic(), message.offset()
    if topic is None or offset is None or offset < 0:  # the error of a topic has partition 0
        return topic or ""
    return f"{topic}[{message.partition()}]@{offset}"
