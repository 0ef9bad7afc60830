"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from cloudevents_kafka.cli.kafka.settings import Settings, gather
from cloudevents_kafka.cli.terminal.parameters import FILE, Seconds, parse_pair

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])
timeout_option: Final = click.option(
    "--timeout",
    type=Seconds(),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a broker may be silent.",
)
config_option: Final = click.option(
    "--config", type=FILE, metavar="FILE", help="Settings as lines of NAME=VALUE (or CE_KAFKA_CONFIG)."
)
_KAFKA: Final = (
    click.option("-b", "--brokers", metavar="HOST:PORT,…", help="Brokers to begin with (bootstrap.servers)."),
    click.option(
        "-X",
        "options",
        metavar="NAME=VALUE",
        multiple=True,
        help="Any librdkafka setting; NAME@=FILE reads the value from a file. Repeatable.",
    ),
    config_option,
    click.option(
        "--show-config",
        is_flag=True,
        help="Print the settings in force; masked are all values but those known to be harmless.",
    ),
    timeout_option,
)


def kafka_options(command: _Decorated) -> _Decorated:
    """Add the options that say which Kafka, and how to reach it."""
    for option in reversed(_KAFKA):
        command = option(command)
    return command


def pairs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Any, ...]:
    """Parse options of ``name=value``."""
    try:
        return tuple(map(parse_pair, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def take_settings(options: dict[str, Any]) -> Settings:
    """Take what `kafka_options` added out of a command's options, and gather all settings."""
    return gather(options.pop("config"), os.environ, options.pop("options"), options.pop("brokers"))
