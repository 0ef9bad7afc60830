"""Write `spec-conformance/lenient.md` from the vectors when run as a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "spec-conformance"
TABLE: Final = FOLDER / "lenient.md"

_HEAD: Final = """# What lenient reading accepts

Strict reading accepts only what the specification allows. `lenient=True` (on the command line,
`--lenient`) refuses a record only if a REQUIRED attribute is missing or no valid text, or if its envelope
cannot be read. Anything else that breaks a rule is kept where an event can hold it, else left out. Each
deviation is in `tolerated`. Nothing is invented: absent attributes stay absent. If strict reading accepts a
record, lenient reading returns the same event, possibly with more attributes, from headers whose names are
almost those of the binding, if these agree and are valid.

What is left out is a `LeftOut` in `tolerated`, with its name and its whole value: text, or bytes if it is not
UTF-8. In messages and logs the value is escaped and cut.

In Protobuf and Avro, a record is also refused in these cases: a name occurs twice in the map of attributes, a
text is not UTF-8, or data is a text that the charset of its content type cannot express. The same holds in
Protobuf, if a REQUIRED attribute is in the map, if a value or data has several fields, or if `proto_data` is
not an Any; in Avro, if data is neither bytes nor a text, but has a content type other than JSON; in compact
Avro, if an extension has the name of a core attribute, or is a timestamp but has the name of an extension of
another type.

`python -m tests.support.lenient_table` writes this page from the vectors.
"""


_KINDS: Final = (
    (
        "the content-type of JSON is missing or another one, but all REQUIRED members are there",
        "the event in the JSON; another content-type is that of the data",
    ),
    (
        "a content-type in quotation marks, or after a blank",
        "the content-type without them",
    ),
    (
        "ce_datacontenttype without content-type",
        "it as datacontenttype",
    ),
    (
        "ce_datacontenttype that differs from content-type",
        "content-type; the other is left out",
    ),
    (
        "headers with the prefix of another binding, or in other letters",
        "the attribute of the exact name",
    ),
    (
        "names of members or attributes in other letters",
        "the attribute of the name in small letters",
    ),
    (
        "a name with `-`, `_` or `.`",
        "the extension of the name without them; if that is of the core, `data` or empty, it is left out",
    ),
    (
        "any other name",
        "left out",
    ),
    (
        "the exact name and another one for it",
        "the exact one; the other is left out",
    ),
    (
        "several names for one attribute, none exact, with the same value",
        "the value",
    ),
    (
        "the same with other values",
        "left out, all of them; the record is refused if it is REQUIRED",
    ),
    (
        "a header, or a member that is not REQUIRED, more than once",
        "the last; the earlier ones are left out",
    ),
    (
        "specversion in quotation marks in its header",
        "all headers without their quotation marks, as JSON strings",
    ),
    (
        "a time with a blank in place of the T",
        "the time with the T",
    ),
    (
        "any other time that is not one of RFC 3339",
        "left out: nothing is repaired, and `time` is a datetime or None",
    ),
    (
        "source, dataschema or datacontenttype of another form",
        "the text as it came, or what is in its quotation marks",
    ),
    (
        "an extension that is not of the type or form of its document",
        "the text as it came; True and False as Booleans, and texts in quotation marks, corrected",
    ),
    (
        "an extension without another one that it needs",
        "the extension",
    ),
    (
        "an attribute that is empty, and may not be",
        "left out",
    ),
    (
        "control characters, or bytes that are not UTF-8",
        "left out",
    ),
    (
        "a number of another type than Integer, an object or a list in JSON",
        "its JSON text, which is checked as other texts",
    ),
    (
        "a JSON member that is not REQUIRED, and has half of a character, or is nested too deep",
        "left out, as JSON",
    ),
    (
        "data that must be a string, has half of a character, or cannot be in the charset of its type",
        "the data as JSON",
    ),
    (
        "an attribute that is not REQUIRED in a field of Protobuf for another type",
        "its text, which is checked as other texts",
    ),
    (
        "a byte order mark",
        "the event",
    ),
)
"""What breaks a rule, and what the event has then."""


def markdown() -> str:
    """Return the page in Markdown."""
    return "\n".join([_HEAD, *_kinds(), "", *_producers(), "", *_other_deviations(), ""])


def _cases(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / "vectors" / name).read_text("utf-8"))["cases"]
    return found


def _kinds() -> Iterator[str]:
    yield "## Kinds\n"
    yield "| what breaks a rule | the event has |"
    yield "|---|---|"
    yield from (f"| {what} | {found} |" for what, found in _KINDS)


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
