"""The clients for asyncio: `AsyncEventProducer`, `AsyncEventConsumer` and `AsyncEventProcessor`.

These classes convert events and report deliveries with the same code as `EventProducer` and `EventConsumer`,
and never block the event loop. The Kafka client is a plain ``Producer`` or ``Consumer`` of confluent-kafka,
which may be made from settings, or a client of aiokafka. If a call of a confluent-kafka client may wait, a
separate thread makes the call. Calls of an aiokafka client are awaited. The event loop's default executor is
not used. Read the modules in this order:

* `producer` with `_sender` and `_aiokafka_sender`;
* `consumer` with `_source`, `_call_thread`, `_aiokafka_source`, `_aiokafka_message`, `_checks` and `_loop`;
* `_task_run` and `_tasks`: `AsyncEventConsumer.run`;
* `processor`: records that are read and written exactly once.
"""

from cloudevents_kafka.clients.aio.consumer import AsyncEventConsumer
from cloudevents_kafka.clients.aio.processor import AsyncEventProcessor
from cloudevents_kafka.clients.aio.producer import AsyncDelivery, AsyncEventProducer

__all__ = ["AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer"]
