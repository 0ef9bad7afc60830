"""The attributes of events: types, known extensions and validation.

Read the modules of this package in this order; other packages import from these modules:

* `types`: the names and the seven types of attributes, and the canonical texts of values;
* `_uri`, `timestamps` and `media_type`: the grammars of URIs, timestamps and media types;
* `documented_extensions` and `extension_types`: the extensions of the specification, and all extensions that
  are known in this process;
* `validation`: the rules for attributes; this module finds the problems of attributes that break a rule;
* `fast_validation`: checks fast whether an event is valid; it does not find the problems of invalid events;
* `python_values`: creates attributes from the Python values that users pass.
"""
