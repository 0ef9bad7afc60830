"""The caches of fast validation."""

from __future__ import annotations

from strategies import GOOD

from cloudevents_kafka.attributes import fast_validation
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import accept


def test_caches_are_bounded() -> None:
    """Many sources, schemas and names do not stay in memory."""
    for number in range(5000):
        assert accept({**GOOD, "source": f"/{number}", "dataschema": f"a:{number}", f"x{number}": "v"})
    assert accept({**GOOD, "source": "/" * 10**5, "x" * 10**5: "v"})
    for memory in (fast_validation._sources, fast_validation._schemas, current.table.text_names):
        assert len(memory) <= 4096
    assert max(map(len, fast_validation._sources)) <= 256
