"""The clients for asyncio: `AsyncEventProducer` and `AsyncEventConsumer`.

They convert and report as `EventProducer` and `EventConsumer` do, by the same code, and never block
the event loop. A user's client is confluent-kafka's plain ``Producer`` or ``Consumer``, whose calls that
wait are made in one thread, or one of aiokafka's clients, which is awaited. Read `producer` with
`_sender`, `_polled_sender` and `_aiokafka_sender`, then `consumer` with `_source`, `_polled_source`
and `_aiokafka_source`; `_run` and `_tasks` are `AsyncEventConsumer.run`, and `processor` exactly once.
"""

from cloudevents_kafka.clients.aio.consumer import AsyncEventConsumer
from cloudevents_kafka.clients.aio.processor import AsyncEventProcessor
from cloudevents_kafka.clients.aio.producer import AsyncDelivery, AsyncEventProducer

__all__ = ["AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer"]
