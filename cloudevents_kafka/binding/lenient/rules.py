"""The texts and clauses of what lenient reading accepts; the Java function reports the same."""

from __future__ import annotations

from typing import Final

LEFT_OUT: Final = ": left out"
"""Ends the rule of an attribute that the event is read without."""
NO_CONTENT_TYPE: Final = ("header is missing: the value was read as a JSON event", "K-09")
OTHER_CONTENT_TYPE: Final = ("does not name an event format: the value was read as a JSON event", "K-15")
COPY: Final = ("is in ce_datacontenttype", "K-04")
HEADER: Final = ("was read as ", "K-05")
"""Of a name of a header, before the exact one."""
MEMBER: Final = ("was read as ", "N-01")
"""Of a name of a JSON member, before that of the attribute."""
NESTED: Final = ("is an object or a list: kept as its JSON text", "J-03")
