"""A sample of `make soak`: processes with an EventProcessor, and a broker, are killed under load."""

from __future__ import annotations

import secrets

import pytest
import soak_processor


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_events_are_forwarded_once_through_kills() -> None:
    """After ten kills at random moments each event is once in the target, for who reads committed ones."""
    soak_processor.run(kills=10, seed=secrets.randbelow(1 << 31), rate=300)
