"""The options of a command that are those of a struct have all that its fields say."""

from __future__ import annotations

import click
import pytest

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.primitives.options import Field, fields_of
from cloudevents_kafka.spark.pipeline import PipelineOptions, ReplayOptions

OF_SETTINGS = {"conf", "kafka_options"}


def command(*names: str) -> click.Command:
    found: click.Command = app
    for name in names:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), name) or pytest.fail(name)
    return found


STRUCTS = [(PipelineOptions, ("pipeline",)), (ReplayOptions, ("table", "replay"))]


@pytest.mark.parametrize(("struct", "names"), STRUCTS)
def test_every_field_is_an_option(struct, names):
    """Each field has an option with its flags, its default and its help, in the order of the fields."""
    fields = [field for field in fields_of(struct) if not field.option.of_settings]
    assert {*struct.__struct_fields__} - {field.name for field in fields} <= OF_SETTINGS
    own = {option.name: option for option in command(*names).params if isinstance(option, click.Option)}
    assert [name for name in own if name in struct.__struct_fields__] == [field.name for field in fields]
    for field in fields:
        check_option(own[field.name], field)


def check_option(option: click.Option, field: Field) -> None:
    flags = field.option.flags.split() or [f"--{field.name.replace('_', '-')}"]
    assert option.opts == flags
    assert option.help is not None
    assert option.help.startswith(field.option.help)
    assert len(field.option.help) > 10
    assert option.multiple is (field.form != "value")
    if field.form == "value" and field.types != (bool,) and field.default is not None:
        assert option.default == field.default
        assert option.show_default
    if field.types == (bool,):
        assert option.secondary_opts == [f"--no-{flags[-1].removeprefix('--')}"]


@pytest.mark.parametrize("struct", [PipelineOptions, ReplayOptions])
def test_every_field_is_documented(struct):
    """The docstring of a struct, which the reference has, names each field."""
    text = struct.__doc__ or ""
    missing = [
        name for name in struct.__struct_fields__ if f"``{name}" not in text and f" {name}=" not in text
    ]
    assert missing == []


def test_opposites_are_not_in_help(run):
    """A flag has an opposite, for a file that has the flag; help has the flag alone."""
    shown = run("pipeline", "--help").stdout
    assert "  --once  " in shown
    assert "  -q, --quiet  " in shown
    assert "--no-" not in shown
