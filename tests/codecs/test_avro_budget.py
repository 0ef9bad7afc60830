"""The budget of a datum of Avro: what it has may be spent, and no more."""

from __future__ import annotations

import pytest

from cloudevents_kafka.codecs.avro_budget import BeyondBudget, Budget
from tests.support.cases import each


@each("size", [0, 1, 1000, 65_536, 65_537, 1_000_000])
def test_a_budget_may_be_spent_once(size: int) -> None:
    """The last value and byte that it has are free; the next one raises an error that names the bound."""
    empties, steps, output = max(65_536, size), 16_384 + 32 * size, 1_048_576 + 32 * size
    for spend, most, bound in (
        (Budget(size).spend_empties, empties, f"at most {empties} items without bytes"),
        (Budget(size).spend_output, output, f"at most {output} bytes of defaults"),
    ):
        spend(1)
        spend(most - 1)
        with pytest.raises(BeyondBudget, match=f"^{bound}$"):
            spend(1)
    if size <= 1000:  # each step is a call
        budget = Budget(size)
        for _ in range(steps):
            budget.spend_step()
        with pytest.raises(BeyondBudget, match=f"^at most {steps} values, for its {size} bytes$"):
            budget.spend_step()
