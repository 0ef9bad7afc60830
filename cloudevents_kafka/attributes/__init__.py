"""The attributes of events: types, known extensions and validation.

Read the modules in this order:

* `types`: names, the seven types, and canonical texts;
* `_uri`, `timestamps` and `media_type`: the grammars of values;
* `documented_extensions` and `extension_types`: the extensions of the specification, and
  those that are known in this process;
* `validation`: the rules and the problems of attributes that break them;
* `fast_validation`: a fast check that accepts most valid attributes.
"""

from cloudevents_kafka.attributes.extension_types import register_extension, type_of
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue, canonical_text
from cloudevents_kafka.attributes.validation import find_problems, validate

__all__ = [
    "AttributeType",
    "AttributeValue",
    "canonical_text",
    "find_problems",
    "register_extension",
    "type_of",
    "validate",
]
