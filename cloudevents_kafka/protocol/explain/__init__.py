"""Frames explained, field by field: what stands at which byte, and where a broken one breaks.

Nothing here raises for what the bytes are: what could be read is told, then the problem.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.explain._capture import CaptureExplainer
from cloudevents_kafka.protocol.explain._field import Explained, Field, Problem
from cloudevents_kafka.protocol.explain._frame import explain_request, explain_response
from cloudevents_kafka.protocol.explain._frame_v07 import explain_request_07, explain_response_07

__all__ = [
    "CaptureExplainer",
    "Explained",
    "Field",
    "Problem",
    "explain_request",
    "explain_request_07",
    "explain_response",
    "explain_response_07",
]
