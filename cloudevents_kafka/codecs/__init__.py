"""Codecs of data: from the bytes of a payload to a Python value, and back.

`registry` has the codecs that users register, `avro` and `json` make codecs of a schema
or a type, and `payload` says what data is without a codec. `avro_binary`, `avro_limits`
and `json_grammar` read bytes from strangers within bounds.
"""

from cloudevents_kafka.codecs.avro import avro
from cloudevents_kafka.codecs.json import typed_json
from cloudevents_kafka.codecs.registry import Codec, register_codec, registered, restore

__all__ = ["Codec", "avro", "register_codec", "registered", "restore", "typed_json"]
