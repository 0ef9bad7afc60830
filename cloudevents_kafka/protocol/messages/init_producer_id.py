"""InitProducerId (22): an id for idempotent or transactional producing (KIP-98)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Boolean, Int16, Int32, Int64, String


class InitProducerIdRequest(Structure, kw_only=True):
    """Ask for a producer id; a null transactional id is for an idempotent producer."""

    spec: ClassVar = MessageSpec.of("InitProducerId", 22, "request", versions="0-6", flexible="2+")

    transactional_id: Annotated[String | None, wire(nullable="0+")]
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, wire("3+")] = -1
    producer_epoch: Annotated[Int16, wire("3+")] = -1
    enable2_pc: Annotated[Boolean, wire("6+")] = False
    keep_prepared_txn: Annotated[Boolean, wire("6+")] = False


class InitProducerIdResponse(Structure, kw_only=True):
    """The producer id and its epoch."""

    spec: ClassVar = MessageSpec.of("InitProducerId", 22, "response", versions="0-6", flexible="2+")

    throttle_time_ms: Annotated[Int32, wire(ignorable=True)]
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16
    ongoing_txn_producer_id: Annotated[Int64, wire("6+")] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, wire("6+")] = -1
