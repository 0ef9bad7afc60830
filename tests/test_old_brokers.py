"""Old brokers start with their settings, or raise an error with their log."""

from __future__ import annotations

import pytest

from cloudevents_kafka.testing import BrokerFailed
from tests.support.old_brokers import LegacyKafka


def test_unknown_release():
    """An unknown release is an error, which lists the known ones."""
    with pytest.raises(ValueError, match=r"one of 0\.8\.2-beta, .*1\.1\.1, got '0\.7\.2'"):
        LegacyKafka("0.7.2")


@pytest.mark.legacy
def test_a_broker_that_cannot_start():
    """The error has the end of the broker's log, and no process remains."""
    kafka = LegacyKafka("0.8.2.2", properties={"log.retention.hours": "soon"})
    with pytest.raises(BrokerFailed, match="the broker ended while starting") as caught:
        kafka.start()
    assert "soon" in caught.value.log
    assert not caught.value.log_file.parent.exists()
    assert kafka.brokers == []
