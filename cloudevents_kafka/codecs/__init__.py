"""Codecs: from the payload bytes of an event to a Python value, and back.

`registry` has the codecs that users register. `avro` (in `_avro`) and `typed_json` return codecs for a schema
or a type. `payload` encodes and decodes data without a codec. `json` and `json_grammar` read and write strict
JSON, and `avro_binary` reads Avro from untrusted bytes.
"""

from cloudevents_kafka.codecs._avro import avro
from cloudevents_kafka.codecs.json import typed_json
from cloudevents_kafka.codecs.registry import Codec

__all__ = ["Codec", "avro", "typed_json"]
