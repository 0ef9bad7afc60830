"""Lenient reading, which accepts the known deviations of producers and reports these deviations.

* `rules`: the texts of the problems that lenient reading reports;
* `_headers`: reads headers with misspelled names, or with values in quotation marks;
* `_values`: corrects the values of attributes that break rules;
* `_json`: reads events in JSON: without a content-type, with misspelled member names, with values of wrong
  types, or with data that must be a string but is another JSON value;
* `_read`: reads the event in a record, with the help of these modules.
"""

from cloudevents_kafka.binding.lenient._headers import rank_of_type
from cloudevents_kafka.binding.lenient._read import (
    Found,
    lenient_format,
    lenient_mode,
    read_leniently,
    type_of_data,
)
