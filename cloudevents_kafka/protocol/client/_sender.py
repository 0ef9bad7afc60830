"""`BatchSender`: sends batches to the leaders of their partitions, and handles the responses.

One thread uses the sender, and calls `run_once` until the accumulator is empty. The sender waits for all
leaders at once, so that a leader that does not answer delays only its own partitions.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.client._accumulator import Accumulator
from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._batches import RECORD_BATCH_VERSION, ProducerBatch, encode_records
from cloudevents_kafka.protocol.client._cluster import Cluster
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import MAX_PAUSE, Deadline, is_retriable
from cloudevents_kafka.protocol.client._settings import ProducerSettings
from cloudevents_kafka.protocol.client._socket import wait_readable
from cloudevents_kafka.protocol.client._waker import Waker
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    ProtocolError,
    Unsupported,
)
from cloudevents_kafka.protocol.messages import produce
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.records import Codec

_FINISH_TIMEOUT: Final = 2.0  # seconds, for a broker to process requests that it does not answer
_OPENING_PAUSE: Final = 0.02  # seconds between two checks whether a connection is open
_LOST_SEQUENCES: Final = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID)
"""The errors of a broker that has lost earlier batches, by an unclean election or by retention. Like the Java
client, the sender sends the refused batch again, in a new epoch and with the sequence number 0 (KIP-360)."""
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_ZSTD_VERSION: Final = 7  # the first version of Produce with zstd (KIP-110)


_Encoded: TypeAlias = list[tuple[ProducerBatch, bytes]]


class _InFlight(NamedTuple):
    """A request that the broker has not answered yet, and the batches in the request."""

    broker: Connection
    batches: list[ProducerBatch]
    deadline: Deadline
    correlation_id: int


class BatchSender:
    """Sends the batches of an accumulator to the brokers."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings, accumulator: Accumulator) -> None:
        self._cluster: Final = cluster
        self._settings: Final = settings
        self._accumulator: Final = accumulator
        self._unanswered: dict[Address, tuple[Connection, str]] = {}
        self._in_flight: dict[Connection, deque[_InFlight]] = {}
        self._waker: Final = Waker()

    def run_once(self, seconds: float) -> None:
        """Send the batches that can be sent now, wait some seconds for a response, and handle responses.

        `wake` ends the wait. After the wait, a batch fails if its deadline has passed.
        """
        for leader, led in self._by_leader(self._accumulator.sendable()).items():
            self._send_to(leader, led)
        for broker in self._answering(seconds):
            self._receive(broker)
        for batch in self._accumulator.expired():
            last = f"; the last error: {batch.last_error}" if batch.last_error else ""
            text = f"{batch}: not delivered in time; the broker may have appended it{last}"
            self._accumulator.fail(batch, DeadlineExceeded(text))

    @property
    def is_waiting(self) -> bool:
        """Whether `run_once` waits for responses, because not all requests are answered."""
        return bool(self._in_flight)

    def wake(self) -> None:
        """End the wait of `run_once`; another thread may call this method."""
        self._waker.wake()

    def close(self) -> None:
        self._waker.close()

    def finish(self) -> None:
        """Wait until brokers have processed the requests with acks 0; brokers do not answer these requests.

        A broker processes the requests of a connection in turn, so the broker's response to a later request
        proves that the earlier requests were processed. Brokers of 0.9 lost requests that arrived just before
        the connection was closed.
        """
        for broker, topic in self._unanswered.values():
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            with suppress(ProtocolError):
                broker.request(request, Deadline(_FINISH_TIMEOUT))
        self._unanswered.clear()

    def _send_to(self, leader: int, batches: list[ProducerBatch]) -> None:
        deadline = Deadline(self._settings.request_timeout)
        try:
            broker = self._cluster.open_broker(leader, deadline)
            if broker is None:
                for batch in batches:
                    batch.backoff = Deadline(_OPENING_PAUSE)
                return
            if not broker.throttle.expired():
                for batch in batches:
                    batch.backoff = Deadline(broker.throttle.at_most(MAX_PAUSE))
                    batch.last_error = ClientError(broker.throttled())
                return
            for request in self._requests(broker, batches):
                self._send(broker, request, deadline)
        except ProtocolError as error:
            left = [batch for batch in batches if self._accumulator.has(batch) and not batch.is_in_flight]
            self._retry_or_fail(left, error)

    def _by_leader(self, batches: list[ProducerBatch]) -> dict[int, list[ProducerBatch]]:
        by_leader: dict[int, list[ProducerBatch]] = defaultdict(list)
        for batch in batches:
            try:
                deadline = self._accumulator.time_limit(batch.queued[0])
                leader = self._cluster.leader(*batch.topic_partition, deadline, create=True)
            except ProtocolError as error:
                self._retry_or_fail([batch], error)
            else:
                by_leader[leader].append(batch)
        return by_leader

    def _requests(self, broker: Connection, batches: list[ProducerBatch]) -> Iterator[_Encoded]:
        """Yield the batches of each request, with their bytes; omit batches that `_encode` does not encode.

        A request contains at most ``batch_bytes`` bytes, or only one batch, because brokers limit the size of
        frames (socket.request.max.bytes).
        """
        version = broker.version(produce.ProduceRequest)
        if self._settings.codec is Codec.ZSTD and version < _ZSTD_VERSION:
            raise Unsupported(f"{broker.address}: zstd needs a broker of 2.1")
        request: _Encoded = []
        size = 0
        for batch in batches:
            if (data := self._encode(batch, version)) is None:
                continue
            if request and size + len(data) > self._settings.batch_bytes:
                yield request
                request, size = [], 0
            request.append((batch, data))
            size += len(data)
        if request:
            yield request

    def _send(self, broker: Connection, encoded: _Encoded, deadline: Deadline) -> None:
        """Send one request."""
        settings = self._settings
        topics: dict[str, list[produce.PartitionProduceData]] = defaultdict(list)
        for batch, data in encoded:
            topic, partition = batch.topic_partition
            topics[topic].append(produce.PartitionProduceData(index=partition, records=data))
        request = produce.ProduceRequest(
            acks=settings.acks,
            # S0-A7: "it does not include network latency", so it is half of the client's timeout.
            timeout_ms=int(settings.request_timeout * 500),
            topic_data=[
                produce.TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )
        # S0-A6: if acks is 0 "the server will not send any response"
        correlation_id = broker.send(request, deadline, expects_response=settings.acks != 0)
        batches = [batch for batch, _ in encoded]
        if settings.acks == 0:
            for batch in batches:
                self._unanswered[broker.address] = (broker, batch.topic_partition[0])
                self._accumulator.complete(batch, -1)
            return
        for batch in batches:
            batch.is_in_flight = True
        in_flight = _InFlight(broker, batches, deadline, correlation_id)
        self._in_flight.setdefault(broker, deque()).append(in_flight)

    def _encode(self, batch: ProducerBatch, version: int) -> bytes | None:
        """Return the bytes of a batch, or None if the batch is not sent now."""
        if version < RECORD_BATCH_VERSION:
            self._accumulator.fail_unsupported(batch, version)
            if not batch.queued:
                return None
        records = [queued.record for queued in batch.queued]
        codec = self._settings.codec
        try:
            data = encode_records(records, version, codec, batch.producer_id, batch.sequence)
        except ProtocolError as error:
            self._retry_or_fail([batch], error)
            return None
        batch.encoded_size = len(data)
        return None if self._accumulator.split_if_too_large(batch) else data

    def _answering(self, seconds: float) -> list[Connection]:
        """Return the connections that have received bytes or an error, or whose response is late."""
        if not self._in_flight:
            return []
        answering = [broker for broker in self._in_flight if broker.readable()]
        if not answering:
            limits = (requests[0].deadline.at_most(seconds) for requests in self._in_flight.values())
            waiting: list[Connection | Waker] = [*self._in_flight, self._waker]
            found = wait_readable(waiting, min(limits))
            answering = [broker for broker in found if isinstance(broker, Connection)]
            self._waker.clear()
        late = [broker for broker, requests in self._in_flight.items() if requests[0].deadline.expired()]
        return list(dict.fromkeys([*answering, *late]))

    def _receive(self, broker: Connection) -> None:
        """Handle the response to the oldest request, if the whole response has arrived."""
        request = self._in_flight[broker][0]
        is_late = request.deadline.expired()
        try:
            # The text of the error has the deadline's seconds.
            deadline = request.deadline if is_late else Deadline(0)
            response: produce.ProduceResponse = broker.receive(request.correlation_id, deadline)
        except ProtocolError as error:
            if isinstance(error, DeadlineExceeded) and not is_late:
                return
            broker.close()
            for lost in self._in_flight.pop(broker):
                self._retry_or_fail(self._landed(lost), error)
            return
        self._in_flight[broker].popleft()
        if not self._in_flight[broker]:
            del self._in_flight[broker]
        results = {(t.name, p.index): p for t in response.responses for p in t.partition_responses}
        for batch in self._landed(request):
            self._handle_result(batch, results.get(batch.topic_partition))

    def _landed(self, request: _InFlight) -> list[ProducerBatch]:
        """Return the batches of a finished request, except batches that failed before the response."""
        for batch in request.batches:
            batch.is_in_flight = False
        return [batch for batch in request.batches if self._accumulator.has(batch)]

    def _handle_result(self, batch: ProducerBatch, result: produce.PartitionProduceResponse | None) -> None:
        if result is None:
            error = BrokerError(
                ErrorCode.UNKNOWN_SERVER_ERROR, str(batch), hint="the response does not contain the partition"
            )
            self._retry_or_fail([batch], error)
        elif result.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._accumulator.complete(batch, result.base_offset)
        elif result.error_code in _LOST_SEQUENCES and batch.sequence >= 0:
            # A broker that does not send the start of its log does not know yet why the sequences are lost.
            if result.error_code != ErrorCode.UNKNOWN_PRODUCER_ID or result.log_start_offset != -1:
                self._accumulator.restart(batch)
            batch.back_off(BrokerError(result.error_code, str(batch), result.error_message))
        elif result.error_code in _TOO_LARGE and len(batch.queued) > 1:
            self._accumulator.refuse_size(batch)
        else:
            error = BrokerError(result.error_code, str(batch), result.error_message)
            self._retry_or_fail([batch], error)

    def _retry_or_fail(self, batches: list[ProducerBatch], error: ProtocolError) -> None:
        """Send the batches again later if the error is retriable; otherwise, let the batches fail."""
        for batch in batches:
            if is_retriable(error):
                self._cluster.invalidate(batch.topic_partition[0])
                batch.back_off(error)
            else:
                self._accumulator.fail(batch, error)
