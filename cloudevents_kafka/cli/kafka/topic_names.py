"""The option -t, and the completion of topics in a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from cloudevents_kafka.cli.kafka.cluster import Cluster
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import pop_settings
from cloudevents_kafka.cli.terminal.signals import Interrupts

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SECONDS: Final = 1.0  # the longest wait of a person who presses Tab


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Return the topics whose names begin so, by the settings on the line; none if no broker answers."""
    try:
        settings = pop_settings(dict(ctx.params)).with_defaults("completion", {})
        found = Cluster(BrokerSession(settings, _SECONDS, Interrupts())).topics()
    except click.ClickException:
        return []
    return [name for name in found if name.startswith(incomplete)]


def topic_option(help: str) -> Callable[[_Command], _Command]:
    """Return the decorator for the option -t, whose value is the name of a topic."""
    return click.option("-t", "--topic", metavar="TOPIC", help=help, shell_complete=complete_topics)
