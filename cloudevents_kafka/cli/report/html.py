"""HTML as a tree of elements, in which text is never markup; text from records is masked, escaped and cut."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from xml.etree import ElementTree as ET

from cloudevents_kafka.counting import CUT
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.primitives.redaction import mask_text
from cloudevents_kafka.primitives.visible import escape


def h(tag: str, *children: ET.Element | str, **attributes: str) -> ET.Element:
    """Return an HTML element; in attribute names, a final ``_`` is dropped; others become hyphens."""
    element = ET.Element(tag, {name.rstrip("_").replace("_", "-"): text for name, text in attributes.items()})
    for child in children:
        if not isinstance(child, str):
            element.append(child)
        elif len(element):
            element[-1].tail = child
        else:
            element.text = child
    return element


def shown(text: str, longest: int = 120) -> str:
    """Return text from records after masking secrets, escaping the text as for a terminal, and cutting it."""
    was_cut = len(text) == MAX_KEY_LENGTH or text.endswith(CUT)
    text = escape(mask_text(text.removesuffix(CUT) + CUT if was_cut else text))
    more = "more" if was_cut else f"{len(text) - longest:,} more"
    return text if len(text) <= longest else f"{text[:longest]}… and {more}"


def document(title: str, style: str, *body: ET.Element) -> str:
    """Return an HTML page that loads and runs nothing: its content security policy allows only ``style``."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("title", title),
        h("style", style),
    )
    page = h("html", head, h("body", h("main", *body)), lang="en")
    return f"<!doctype html>\n{ET.tostring(page, encoding='unicode', method='html')}\n"
