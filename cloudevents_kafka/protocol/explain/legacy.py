"""Frames of Kafka 0.7 explained, where an answer does not tell what it answers."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from cloudevents_kafka.protocol.declare import Structure
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.explain.field import Cursor, Explained
from cloudevents_kafka.protocol.explain.frame import best_reading, tell_end, visit_into
from cloudevents_kafka.protocol.explain.notes import attributes, note
from cloudevents_kafka.protocol.frames import size_of
from cloudevents_kafka.protocol.records.compression import Codec, decompress
from cloudevents_kafka.protocol.v07.codes import CODES
from cloudevents_kafka.protocol.v07.messages import (
    REQUESTS,
    RESPONSES,
    FetchResponse,
    MultiFetchResponse,
    RequestHeader,
    RequestType,
)
