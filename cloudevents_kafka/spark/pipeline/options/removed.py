"""The options that were removed from pipelines, each with the advice that CHANGELOG.md also contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

TOPICS: Final = (
    "Write to topics in a function that you pass as each_batch, with encode_events and Spark's Kafka sink. "
    "The pipeline can continue in the same folder: see docs/how-to/each_batch.md"
)
OPTIONS: Final = {
    "mode": (
        "Write to topics in a function that you pass as each_batch, and pass mode to encode_events in this "
        "function: see docs/how-to/each_batch.md"
    ),
    "date_of": (
        "Use a generated column in Delta or a partition by time in Iceberg "
        "(docs/how-to/delta_and_iceberg.md), or write Parquet in a function that you pass as each_batch "
        "(docs/how-to/each_batch.md)"
    ),
}
"""Options that were removed from `PipelineOptions`, and what to do instead."""


def removed_text(name: str, option: str) -> str:
    """Return the error text for a removed option; ``option`` is the option's name as the user wrote it."""
    return f"{option} was removed. {OPTIONS[name]}"


class OptionsMeta(msgspec.StructMeta):
    """The metaclass of `PipelineOptions`, which rejects options that were removed."""

    if not TYPE_CHECKING:  # type checkers know the existing options

        def __call__(self, *args: Any, **options: Any) -> Any:
            """Return the options; raise `ValueError` for an option that was removed."""
            for name in OPTIONS.keys() & options.keys():
                raise ValueError(removed_text(name, f"{name}={options[name]!r}"))
            return super().__call__(*args, **options)
