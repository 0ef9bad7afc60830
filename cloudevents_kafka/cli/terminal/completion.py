"""Shell completion of folders, and of names that are known without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[str] | list[CompletionItem]]


def complete_from(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a function that completes a parameter from the results of ``names``, ignoring case."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
        return [name for name in names() if name.lower().startswith(incomplete.lower())]

    return complete


def complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # the same
    """Return the completion item that makes the shell complete a folder."""
    return [CompletionItem(incomplete, type="dir")]
