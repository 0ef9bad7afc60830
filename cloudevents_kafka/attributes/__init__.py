"""The attributes of events: types, known extensions and validation.

Read the modules in this order; other packages import from them:

* `types`: names, the seven types, and canonical texts;
* `_uri`, `timestamps` and `media_type`: the grammars of values;
* `documented_extensions` and `extension_types`: the extensions of the specification, and
  those that are known in this process;
* `validation`: the rules and the problems of attributes that break them;
* `fast_validation`: the check that nearly all events pass, which names no problems;
* `python_values`: attributes from the values that users pass.
"""
