"""The clients for asyncio: `AsyncEventProducer`, `AsyncEventConsumer` and `AsyncEventProcessor`.

The classes `AsyncEventProducer`, `AsyncEventConsumer` and `AsyncEventProcessor` never block the event loop.
The asyncio classes use the code of `EventProducer` and `EventConsumer` to convert events and to report
deliveries. The Kafka client is a ``Producer`` or ``Consumer`` of confluent-kafka, or a client of aiokafka. A
confluent-kafka client may be made from settings. If a call of a confluent-kafka client may wait, a separate
thread makes the call. Calls of an aiokafka client are awaited. The library does not use the event loop's
default executor for these calls. Read the modules of this package in this order:

* `producer` with `_sender` and `_aiokafka_sender`;
* `consumer` with `_source`, `_call_thread`, `_aiokafka_source`, `_aiokafka_message`, `_checks` and `_loop`;
* `_task_run` and `_tasks`: `AsyncEventConsumer.run`;
* `processor`, which reads records and writes events exactly once.
"""

from cloudevents_kafka.clients.aio.consumer import AsyncEventConsumer
from cloudevents_kafka.clients.aio.processor import AsyncEventProcessor
from cloudevents_kafka.clients.aio.producer import AsyncDelivery, AsyncEventProducer

__all__ = ["AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer"]
