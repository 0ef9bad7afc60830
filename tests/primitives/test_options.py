"""A struct of options says what its fields are for users, and checks them by that."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest

from cloudevents_kafka.primitives.options import Option, check_fields, fields_of, must_be
from tests.support.cases import each

Shared = Annotated[Mapping[str, Any], Option("Shared.", flags="--share")]


class Options(msgspec.Struct, kw_only=True):
    name: Annotated[str, Option("A name.", flags="-n --name", check=must_be("a text", bool))]
    kind: Annotated[Literal["a", "b"], Option("A kind.", instead={"c": "Use b."})] = "a"
    many: Annotated[tuple[str, ...], Option("Many.")] = ()
    some: Annotated[Collection[str], Option("Some.")] = ()
    shared: Shared = {}
    port: Annotated[int | str | None, Option("A port.")] = None
    most: Annotated[int | None, Option("A limit.", least=1)] = 5
    wait: Annotated[float, Option("A time.", least=0)] = 1.5
    is_on: Annotated[bool, Option("A flag.")] = False
    plain: int = 0

    def __post_init__(self) -> None:
        check_fields(self)


def test_fields() -> None:
    """The form, the types, the flag and the default of a field are those of its annotation."""
    found = {field.name: (field.form, field.types, field.flag, field.default) for field in fields_of(Options)}
    assert found == {
        "name": ("value", (str,), "--name", None),
        "kind": ("value", (str,), "--kind", "a"),
        "many": ("list", (str,), "--many", ()),
        "some": ("list", (str,), "--some", ()),
        "shared": ("table", (str,), "--share", {}),
        "port": ("value", (int, str), "--port", None),
        "most": ("value", (int,), "--most", 5),
        "wait": ("value", (float,), "--wait", 1.5),
        "is_on": ("value", (bool,), "--is-on", False),
    }
    assert [field.name for field in fields_of(Options) if field.required] == ["name"]


@each(
    ("wrong", "message"),
    [
        ({"name": ""}, "name must be a text, got ''"),
        ({"kind": "d"}, "kind must be a or b, got 'd'"),
        ({"kind": "c"}, "kind must be a or b, got 'c'. Use b."),
        ({"most": 0}, "most must be 1 or more, or None for no limit, got 0"),
        ({"wait": -1}, "wait must be 0 seconds or more, got -1"),
        ({"wait": math.nan}, "wait must be 0 seconds or more, got nan"),
        ({"wait": math.inf}, "wait must be 0 seconds or more, got inf"),
    ],
)
def test_wrong_values(wrong: dict[str, Any], message: str) -> None:
    """A value that breaks the rule of its field is an error with the name, the rule and the value."""
    with pytest.raises(ValueError, match="must be") as caught:
        Options(**{"name": "x", **wrong})
    assert str(caught.value) == message
    Options(name="x", most=None)
