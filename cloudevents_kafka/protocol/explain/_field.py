"""Field: some bytes, what they are called and what they say; and what collects them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated

MOST_FIELDS: Final = 500_000
"""How many fields one frame is explained by at most: bytes of a stranger may unpack to many more."""
MOST_UNPACKED: Final = 16 * 1024 * 1024
"""How many bytes are made from the compressed ones of one frame at most."""


class Field(NamedTuple):
    """Bytes from ``at`` to before ``end``, their path, type and value, and what that means.

    ``raw`` are the bytes. The ``value`` of an array or of records is their count or size:
    what is in them follows. ``within`` is empty for a field of the frame itself; else the path of
    the compressed bytes that the positions count in, once those are unpacked.
    """

    at: int
    end: int
    path: str
    type: str
    value: Any
    raw: bytes
    note: str = ""
    within: str = ""


class Problem(NamedTuple):
    """Where bytes break a rule, and which; ``at`` counts as a `Field`'s."""

    at: int
    path: str
    rule: str
    within: str = ""

    def __str__(self) -> str:
        """Write it as errors are written."""
        where = f" of what {self.within} unpacks to" if self.within else ""
        return f"{self.path + ' ' if self.path else ''}at byte {self.at}{where}: {self.rule}"


class Explained(NamedTuple):
    """A frame's fields, in the order of their bytes, which they have all, each once.

    So has what was unpacked of it, behind the field that holds it. Bytes behind a problem
    are a field of the type ``unread``.
    """

    kind: str
    api: str
    key: int | None
    version: int | None
    size: int
    fields: list[Field]
    problems: list[Problem]
    known: bool
    """Whether this library reads that API in that version."""

    @property
    def read(self) -> int:
        """How many of the frame's own bytes could be read."""
        return sum(f.end - f.at for f in self.fields if not f.within and f.type != "unread")

    def value(self, path: str) -> Any:
        """Return the value of the first field of that path, None where there is none."""
        return next((field.value for field in self.fields if field.path == path), None)


class Enough(ProtocolError):
    """There are more fields than `MOST_FIELDS`."""


class Collected:
    """The fields and problems of a frame so far."""

    def __init__(self, most: int = MOST_FIELDS) -> None:
        """Take up to so many fields."""
        self.fields: Final[list[Field]] = []
        self.problems: Final[list[Problem]] = []
        self.allowance = MOST_UNPACKED
        self._most: Final = most

    def add(self, field: Field) -> None:
        """Take a field; `Enough` where there are too many."""
        if len(self.fields) >= self._most:
            raise Enough(f"there are more than {self._most:,} fields, so the rest is left out")
        self.fields.append(field)


class Cursor:
    """A place in bytes that are told of while they are read.

    Raises `Truncated` and `Malformed` with byte and path, as the interpreter does; what comes before is
    told then.
    """

    def __init__(self, into: Collected, data: bytes, at: int, end: int, within: str = "") -> None:
        """Read ``data`` from ``at`` to before ``end``."""
        self.into: Final = into
        self.data: Final = data
        self.at = at
        self.end: Final = end
        self.within: Final = within

    def part(self, end: int) -> Cursor:
        """Return a cursor from here on, that ends earlier."""
        return Cursor(self.into, self.data, self.at, end, self.within)

    def tell(self, path: str, end: int, type: str, value: Any, note: str = "") -> None:
        """Tell of the bytes from here on, and go behind them."""
        raw = self.data[self.at : end]
        self.into.add(Field(self.at, end, path, type, value, raw, note, self.within))
        self.at = end

    def check(self, size: int, path: str, at: int | None = None) -> int:
        """Return where so many bytes end; `Truncated` where they are not there."""
        at = self.at if at is None else at
        if at + size > self.end:
            raise Truncated(at + size - self.end, at=at, path=path)
        return at + size

    def flag(self, rule: str, path: str, at: int | None = None) -> None:
        """Tell of a problem that reading can go on behind."""
        self.into.problems.append(Problem(self.at if at is None else at, path, rule, self.within))

    def break_off(self, error: ProtocolError, path: str) -> None:
        """Tell of a problem, and of the bytes up to the end as unread."""
        found = problem(error, self.at, path, self.within)
        if not isinstance(error, Enough) or not any(known.rule == found.rule for known in self.into.problems):
            self.into.problems.append(found)
        if self.at < self.end:
            # Past the limit too: so no byte is left out.
            raw = self.data[self.at : self.end]
            self.into.fields.append(
                Field(self.at, self.end, path, "unread", len(raw), raw, within=self.within)
            )
            self.at = self.end


def problem(error: ProtocolError, at: int, path: str, within: str = "") -> Problem:
    """Make a problem of an error, with its own place if it has one."""
    if isinstance(error, Malformed):
        rule = error.rule
    elif isinstance(error, Truncated):
        rule = f"the bytes end here; {error.missing:,} more are needed at least"
    else:
        return Problem(at, path, str(error), within)
    return Problem(at if error.at is None else error.at, error.path or path, rule, within)
