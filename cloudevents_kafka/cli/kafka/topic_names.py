"""The options for topic names, the topics that these options select, and shell completion of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from cloudevents_kafka.cli.kafka.cluster import ClusterView
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import pop_settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import only, option_group
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import near

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SECONDS: Final = 1.0  # the longest wait of a person who presses Tab
_GLOB: Final = re.compile(r"[*?\[]")  # characters that a topic's name does not have
_INTERNAL: Final = "__"
_VALID: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")


def check_topic_name(topic: str) -> None:
    """Raise `BadUsage` for an invalid topic name, because some invalid names make a Kafka client fail."""
    if not _VALID.fullmatch(topic):
        rule = "a topic name must have 1 to 249 letters, digits, '.', '_' and '-' only"
        raise BadUsage(f"{rule}, got {topic[:100]!r}")


def choose_topics(
    session: BrokerSession, client: Consumer, names: Iterable[str], pattern: re.Pattern[str] | None = None
) -> list[str]:
    """Return the topics that names, globs or ``pattern`` select; the pattern must match the whole topic name.

    Each topic is returned once. A glob or pattern matches Kafka's internal topics only if the glob or pattern
    begins with ``__``. Raises `BadUsage` if no topic matches a glob or the pattern.
    """
    patterns = {name: re.compile(translate(name)) for name in names if _GLOB.search(name)}
    if pattern is not None:
        patterns[pattern.pattern] = pattern
    known = session.topics(client) if patterns else []
    chosen = [name for name in names if name not in patterns]
    for text, regex in patterns.items():
        visible = [name for name in known if text.startswith(_INTERNAL) or not name.startswith(_INTERNAL)]
        found = [name for name in visible if regex.fullmatch(name)]
        if not found:
            advice = near(text, visible) or "; check -t; list the names by the command topics"
            raise BadUsage(f"broker {session.address} has no topic that matches {text!r}{advice}")
        chosen += found
    return list(dict.fromkeys(chosen))


class RegexType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The type of command-line parameters whose value is a regular expression of Python."""

    name = "regex"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Return the compiled expression."""
        try:
            return re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            self.fail(f"it must be a regular expression, got {value!r}: {error}", param, ctx)


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Return the topics whose names begin with a text; return [] if no broker answers in time."""
    return _complete(ctx, incomplete, lambda cluster: list(cluster.topics()))


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Return the consumer groups whose names begin with a text; return [] if no broker answers in time."""
    return _complete(ctx, incomplete, ClusterView.group_names)


def _complete(ctx: click.Context, incomplete: str, ask: Callable[[ClusterView], list[str]]) -> list[str]:
    try:
        settings, _ = pop_settings(dict(ctx.params)).split("spark.")
        found = ask(
            ClusterView(BrokerSession(settings.with_defaults("completion", {}), _SECONDS, Interrupts()))
        )
    except click.ClickException:
        return []
    return [name for name in found if name.startswith(incomplete)]


def topic_option(help: str) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the option -t, whose value is the name of a topic."""
    options: dict[str, Any] = {"metavar": "TOPIC", "help": help, "shell_complete": complete_topics}
    return click.option("-t", "--topic", multiple=True, callback=only, **options)


topics_options: Final = option_group(
    click.option(
        "-t",
        "--topic",
        "topics",
        multiple=True,
        metavar="TOPIC",
        help="A topic to read, or a glob such as 'order*'. Repeatable.",
        shell_complete=complete_topics,
    ),
    click.option(
        "--topic-pattern", type=RegexType(), metavar="REGEX", help="Read all topics whose whole name matches."
    ),
)


def group_option(help: str, *arguments: str, repeatable: bool = False) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the option --group, whose value is the name of a consumer group.

    With ``repeatable``, the option can be repeated, and its value is a list of names.
    """
    options: dict[str, Any] = {"metavar": "NAME", "help": help, "shell_complete": complete_groups}
    return click.option(
        "--group", *arguments, multiple=True, callback=None if repeatable else only, **options
    )
