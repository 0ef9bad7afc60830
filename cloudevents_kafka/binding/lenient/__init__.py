"""Lenient reading, which accepts and reports the deviations of known producers.

* `rules`: the problems that are reported;
* `_headers`: reads headers with nearly exact names, or with values in quotation marks;
* `_values`: corrects attributes that break rules;
* `_json`: reads JSON that has no content-type, members whose names are nearly exact or whose values have
  other types, and data that is another JSON value in place of a string;
* `_read`: reads the event of a record with these modules.
"""

from cloudevents_kafka.binding.lenient._read import Found, lenient_format, lenient_mode, read_leniently
