"""A Kafka client in pure Python: `Client` connects, and creates producers and consumers.

Read `_client` and `_settings` first, then the modules on which they depend, lowest first: `_retry`
(deadlines), `_address` and `_dialing`, `_socket` (frames), `_connection` (requests: `_api_versions` chooses
their versions, `_capture` records them, `_throttle` delays them), `_broker` (login with `_sasl` and
`_saslprep`), `_opening` (connects and logs in with a thread), and `_cluster` (metadata, leaders, retries).
The modules for producing are `_producer`, `_accumulator`, `_batches`, `_batch_limit`, `_partitioners`,
`_sender` and `_waker`. The modules for consuming are `_consumer`, `_message`, `_fetcher`, `_cursor`,
`_buffer`, `_isolation`, `_group`, `_assignors` and `_offsets`.
"""

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._api_versions import CLIENT_VERSIONS, VERSIONS_0_8, VERSIONS_0_9
from cloudevents_kafka.protocol.client._batches import check_headers, encode_records
from cloudevents_kafka.protocol.client._capture import CapturedFrame, parse_line, stream_trace
from cloudevents_kafka.protocol.client._client import Client
from cloudevents_kafka.protocol.client._consumer import Consumer
from cloudevents_kafka.protocol.client._message import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    Message,
    TopicPartition,
)
from cloudevents_kafka.protocol.client._partitioners import at_random, by_key, round_robin
from cloudevents_kafka.protocol.client._producer import Producer
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline
from cloudevents_kafka.protocol.client._sasl import SCRAM_HASHES, ScramKeys
from cloudevents_kafka.protocol.client._settings import OAuthBearer, Plain, Scram
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed, FrameSocket
