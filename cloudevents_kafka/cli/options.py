"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from cloudevents_kafka.cli.filters import parse_pair
from cloudevents_kafka.cli.settings import Settings, gather

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
_KAFKA = (
    click.option("-b", "--brokers", metavar="HOST:PORT,…", help="Brokers to begin with (bootstrap.servers)."),
    click.option(
        "-X",
        "options",
        metavar="NAME=VALUE",
        multiple=True,
        help="Any librdkafka setting; NAME@=FILE reads the value from a file. Repeatable.",
    ),
    click.option("--config", metavar="FILE", help="Settings as lines of NAME=VALUE (or CE_KAFKA_CONFIG)."),
    click.option("--show-config", is_flag=True, help="Print the settings in force, secrets masked."),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=15.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a broker may be silent.",
    ),
)


def kafka_options(command: _Decorated) -> _Decorated:
    """Add the options that say which Kafka, and how to reach it."""
    for option in reversed(_KAFKA):
        command = option(command)
    return command


def pairs(*, valueless: bool = False) -> Callable[..., tuple[Any, ...]]:
    """Make a callback that parses options of ``name=value``; with ``valueless`` also ``name``."""

    def parse(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Any, ...]:
        try:
            return tuple(parse_pair(text, valueless=valueless) for text in texts)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return parse


def take_settings(options: dict[str, Any]) -> Settings:
    """Take what `kafka_options` added out of a command's options, and gather all settings."""
    return gather(options.pop("config"), os.environ, options.pop("options"), options.pop("brokers"))
