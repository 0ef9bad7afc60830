"""Codecs convert the payload bytes of an event to a Python value, and back.

The module `registry` stores the codecs that were registered with `register_codec`. The function `avro` (in
`_avro`) returns a codec for a schema, and the function `typed_json` returns a codec for a type. The module
`payload` encodes and decodes data if no codec is registered for it. The modules `json` and `json_grammar`
read and write strict JSON, and the module `avro_binary` reads Avro from untrusted bytes.
"""

from cloudevents_kafka.codecs._avro import avro
from cloudevents_kafka.codecs.json import typed_json
from cloudevents_kafka.codecs.registry import Codec

__all__ = ["Codec", "avro", "typed_json"]
