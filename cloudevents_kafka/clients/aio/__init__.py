"""The clients for asyncio: `AsyncEventProducer`, `AsyncEventConsumer` and `AsyncEventProcessor`.

These three classes never block the event loop. They use the code of `EventProducer` and `EventConsumer` to
convert events and to report deliveries. The Kafka client is a ``Producer`` or ``Consumer`` of
confluent-kafka, or a client of aiokafka. A confluent-kafka client may be made from settings. If a call of a
confluent-kafka client may wait, a separate thread makes the call. Calls of an aiokafka client are awaited.
The event loop's default executor is not used. Read the modules in this order:

* `producer` with `_sender` and `_aiokafka_sender`;
* `consumer` with `_source`, `_call_thread`, `_aiokafka_source`, `_aiokafka_message`, `_checks` and `_loop`;
* `_task_run` and `_tasks`: `AsyncEventConsumer.run`;
* `processor`, which reads records and writes events exactly once.
"""

from cloudevents_kafka.clients.aio.consumer import AsyncEventConsumer
from cloudevents_kafka.clients.aio.processor import AsyncEventProcessor
from cloudevents_kafka.clients.aio.producer import AsyncDelivery, AsyncEventProducer

__all__ = ["AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer"]
