"""Lenient reading, which accepts and reports the deviations of known producers.

* `rules`: the problems that are reported;
* `_headers`: reads headers with nearly exact names, or with values in quotation marks;
* `_values`: corrects attributes that break rules;
* `_json`: reads JSON without a content-type, JSON with misspelled member names or values of wrong types, and
  JSON whose data must be a string but is another JSON value;
* `_read`: reads the event of a record with these modules.
"""

from cloudevents_kafka.binding.lenient._read import Found, lenient_format, lenient_mode, read_leniently
