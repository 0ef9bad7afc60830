"""Write `spec-conformance/lenient.md` from the vectors when run as a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "spec-conformance"
TABLE: Final = FOLDER / "lenient.md"

_HEAD: Final = """# What lenient reading accepts

Strict reading accepts only what the specification allows. Lenient reading (`lenient=True`, on the command
line `--lenient`) also accepts records that break rules. Lenient reading refuses a record only if the envelope
of the event cannot be read or is ambiguous, or if a REQUIRED attribute is missing, ambiguous, or not a valid
text. Any other value that breaks a rule is kept if an event can contain the value, and is left out if not.
`tolerated` lists each deviation. Lenient reading does not invent values: an absent attribute stays absent.

If strict reading accepts a record, lenient reading returns the same event. The event may have additional
attributes, which come from headers whose names nearly match the names in the binding. Lenient reading adds
such an attribute only if the attribute is valid and all headers for the attribute have the same value.

For each value that is left out, `tolerated` contains a `LeftOut` with the name and the whole value. The value
is a text, or bytes if it is not UTF-8. Messages and logs show the value escaped and shortened.

Lenient reading of Protobuf and Avro also refuses a record in these cases:

* In both formats, a name occurs twice in the map of attributes, a text is not UTF-8, or the data is a text
  that the charset of its content type cannot express.
* In Protobuf, a REQUIRED attribute is in the map, a value or the data has several fields, or `proto_data` is
  not an Any.
* In Avro, the data is neither bytes nor a text, but has a content type other than JSON.
* In compact Avro, an extension has the name of a core attribute, or a timestamp has the name of an extension
  that is not a timestamp.

`python -m tests.support.lenient_table` writes this page from the test vectors.
"""


_KINDS: Final = (
    (
        (
            "The content-type header is missing or does not name an event format, but the value is a "
            "JSON object with all REQUIRED members."
        ),
        (
            "The event is read from the JSON object. If the header names a type other than JSON, and "
            "the event does not have a datacontenttype, this type becomes the datacontenttype."
        ),
    ),
    (
        "content-type or datacontenttype is in quotation marks, or after a blank.",
        "The content type is read without the quotation marks and blanks.",
    ),
    (
        "ce_datacontenttype is present, but content-type is missing.",
        "ce_datacontenttype is read as datacontenttype.",
    ),
    (
        "ce_datacontenttype differs from content-type.",
        "content-type is read. ce_datacontenttype is left out.",
    ),
    (
        (
            "The name of a header has the prefix of another binding, or differs from the exact name in "
            "upper and lower case."
        ),
        "The header is read under its exact name.",
    ),
    (
        "The name of a member or of an attribute contains capital letters.",
        "The value is read under the name in lower case.",
    ),
    (
        "A name contains `-`, `_` or `.`.",
        (
            "The value becomes an extension whose name does not contain these characters. If this name "
            "is empty, `data` or the name of a core attribute, the value is left out."
        ),
    ),
    (
        "A name stays invalid in lower case and without `-`, `_` and `.`.",
        "The value is left out.",
    ),
    (
        "An attribute occurs under its exact name and under another name.",
        "The value under the exact name is read. The other value is left out.",
    ),
    (
        "An attribute occurs under several names, but not under its exact name, and all values are equal.",
        "The value is read.",
    ),
    (
        "An attribute occurs under several names, but not under its exact name, and the values differ.",
        "All these values are left out. If the attribute is REQUIRED, the record is refused.",
    ),
    (
        (
            "A header occurs more than once, or a JSON member that is neither REQUIRED nor the data "
            "occurs more than once."
        ),
        "The last value is read. The earlier values are left out.",
    ),
    (
        (
            "content-type, or ce_datacontenttype in its place, occurs more than once with different values, "
            "and a value names an event format."
        ),
        (
            "The value that names an event format is read, in any order. The other values are left out. "
            "But ce_datacontenttype cannot name an event format if all REQUIRED headers are present."
        ),
    ),
    (
        "content-type, or ce_datacontenttype in its place, occurs more than once, and a value is not UTF-8.",
        "Of the values in UTF-8, the last one is read. The other values are left out.",
    ),
    (
        "The specversion header is in quotation marks.",
        "All header values in quotation marks are read as JSON strings.",
    ),
    (
        "`time` is not an RFC 3339 timestamp.",
        "`time` is left out, because the `time` of an event is a datetime or None.",
    ),
    (
        "source, dataschema or datacontenttype is not valid.",
        "Quotation marks around a valid text are removed. Any other text stays unchanged.",
    ),
    (
        "An extension does not have the type or form that its document requires.",
        (
            "True and False become Booleans. Quotation marks around a valid text are removed. Any "
            "other text stays unchanged."
        ),
    ),
    (
        "An extension is set without another attribute that it requires.",
        "The event has the extension.",
    ),
    (
        "An attribute is empty, but must not be empty.",
        "The attribute is left out.",
    ),
    (
        "A value contains control characters, or is not UTF-8.",
        "The value is left out.",
    ),
    (
        "In JSON, an attribute that is not REQUIRED is an object, a list, or a number other than an Integer.",
        "The value is replaced by its JSON text, which is checked like any other text.",
    ),
    (
        "A JSON member that is not REQUIRED contains half of a surrogate pair, or is nested too deeply.",
        "The member is left out. `LeftOut` contains its JSON.",
    ),
    (
        (
            "The data must be a string but is another JSON value, contains half of a surrogate pair, "
            "or cannot be expressed in the charset of its content type."
        ),
        "The event has the data as JSON.",
    ),
    (
        "In Protobuf, an attribute that is not REQUIRED is in a field for another type.",
        "The value is replaced by its text, which is checked like any other text.",
    ),
    (
        "The JSON text begins with a byte order mark.",
        "The event is read without the byte order mark.",
    ),
)
"""The deviations, and the results of lenient reading."""


def markdown() -> str:
    """Return the page in Markdown."""
    return "\n".join([_HEAD, *_kinds(), "", *_producers(), "", *_other_deviations(), ""])


def _cases(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / "vectors" / name).read_text("utf-8"))["cases"]
    return found


def _kinds() -> Iterator[str]:
    yield "## Kinds\n"
    yield "| deviation | result of lenient reading |"
    yield "|---|---|"
    yield from (f"| {deviation} | {outcome} |" for deviation, outcome in _KINDS)


def _producers() -> Iterator[str]:
    yield "## Known producers\n"
    yield "| producer | record | strict | lenient | reported |"
    yield "|---|---|---|---|---|"
    for case in sorted(_cases("real-producers.json"), key=lambda case: case["source"].lower()):
        yield f"| {case['source']} | {case['about']} | {_row(case)} |"


def _other_deviations() -> Iterator[str]:
    yield "## Other deviations\n"
    yield "| record | strict | lenient | reported |"
    yield "|---|---|---|---|"
    for case in _cases("decode-matrix.json"):
        if case["strict"]["verdict"] != case["lenient"]["verdict"] or case["lenient"].get("tolerated"):
            yield f"| {case['about']} | {_row(case)} |"


def _row(case: Any) -> str:
    return f"{_outcome(case['strict'])} | {_outcome(case['lenient'])} | {_reported(case['lenient'])}"


def _outcome(expected: Any) -> str:
    faults = [fault or "the value" for fault in expected.get("attributes_at_fault", [])]
    verdict: str = expected["verdict"].replace("-", " ")
    return f"{verdict}: {', '.join(faults)}" if faults else verdict


def _reported(expected: Any) -> str:
    return ", ".join(name or "the value" for name in expected.get("tolerated", []))


if __name__ == "__main__":
    TABLE.write_text(markdown(), encoding="utf-8")
