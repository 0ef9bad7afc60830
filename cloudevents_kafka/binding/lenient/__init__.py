"""Lenient reading: accept and report the deviations of known producers.

* `rules`: the problems that are reported;
* `_headers`: headers with nearly exact names, or with values in quotation marks;
* `_values`: attributes that break rules;
* `_json`: JSON without a content-type, members with nearly exact names or values of other types, and data
  that must be a string;
* `_read`: reads the event of a record by these steps.
"""

from cloudevents_kafka.binding.lenient._read import Found, lenient_format, lenient_mode, read_leniently
