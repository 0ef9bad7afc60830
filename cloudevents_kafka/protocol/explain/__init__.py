"""Descriptions of frames: each field with its bytes, type, value and meaning, and the frame's problems.

The functions accept any bytes: the description of an invalid frame lists the fields before the problem, and
then the problem. Read `_field` (the results), `_cursor`, `_frame` and `_frame_v07` (requests, responses and
captures), then `_records`. `grammar` returns the grammar of a message.
"""

from cloudevents_kafka.protocol.explain._field import ExplainedFrame, Field, Problem
from cloudevents_kafka.protocol.explain._frame import CaptureExplainer, explain_request, explain_response
from cloudevents_kafka.protocol.explain._frame_v07 import explain_request_07, explain_response_07

__all__ = [
    "CaptureExplainer",
    "ExplainedFrame",
    "Field",
    "Problem",
    "explain_request",
    "explain_request_07",
    "explain_response",
    "explain_response_07",
]
