"""Lenient reading: accept and report the deviations of known producers.

* `_headers`: headers with nearly exact names;
* `_values`: attributes that break rules;
* `_json`: JSON without a content-type, with names in other letters, members of other types, and data
  that must be a string;
* `_read`: the event of a record, by these steps.
"""

from cloudevents_kafka.binding.lenient._read import Found, lenient_mode, read_leniently
