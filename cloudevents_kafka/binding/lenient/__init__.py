"""Lenient reading: accept and report the deviations of known producers.

* `rules`: what is reported;
* `_headers`: headers with nearly exact names, or in quotation marks;
* `_values`: attributes that break rules;
* `_json`: JSON without a content-type, members with other names and values of other types, and data that
  must be a string;
* `_read`: the event of a record, by these steps.
"""

from cloudevents_kafka.binding.lenient._read import Found, lenient_format, lenient_mode, read_leniently
