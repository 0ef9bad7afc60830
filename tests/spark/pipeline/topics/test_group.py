"""A group has the landed offsets for show: refusals warn once for each reason, and cost a bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline.notes import OffsetRange
from cloudevents_kafka.spark.pipeline.topics import GroupOffsets, _group
from cloudevents_kafka.spark.pipeline.topics._group import GroupAdmin


class Admin:
    """Refuses commits for the next reasons."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = list(reasons)
        self.calls: list[Any] = []

    def commit_offsets(self, group: str, ends: Any, timeout: float) -> str | None:
        self.calls.append((group, dict(ends), timeout))
        return self.reasons.pop(0) if self.reasons else None


def made(admin: Admin, warnings: list[str]) -> GroupOffsets:
    group = GroupOffsets(None, {}, warnings.append)
    group._group, group._admin = "g", admin  # type: ignore[assignment]
    return group


def ranges(**ends: int) -> Any:
    return {topic: {"0": OffsetRange(0, end)} for topic, end in ends.items()}


def test_newest_ends_are_committed() -> None:
    """Several batches are one commit, and nothing new is none."""
    admin, warnings = Admin(), list[str]()
    group = made(admin, warnings)
    group.commit()
    group.add(ranges(t=5))
    group.add(ranges(t=7, u=1))
    group.commit()
    group.commit()
    assert admin.calls == [("g", {("t", 0): 7, ("u", 0): 1}, 5.0)]
    assert warnings == []


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reason is one warning; after a refusal there is a pause, and then all is committed."""
    admin, warnings = Admin("A", "A", "B"), list[str]()
    group = made(admin, warnings)
    group.add(ranges(t=5))
    group.commit()
    group.commit()
    assert len(admin.calls) == 1
    now = _group.time.monotonic()
    for minute in range(1, 5):
        monkeypatch.setattr(_group.time, "monotonic", lambda minute=minute: now + 61 * minute)
        group.add(ranges(u=minute))
        group.commit()
    assert len(admin.calls) == 4 + 1
    assert [warning.partition("group g: ")[2][:2] for warning in warnings] == ["A.", "B."]
    assert admin.calls[3][1] == {("t", 0): 5, ("u", 0): 3}


def test_no_client() -> None:
    """Settings that only Java has are a reason."""
    options = {"kafka.bootstrap.servers": "b:1", "kafka.ssl.truststore.location": "x.jks"}
    reason = GroupAdmin(options).commit_offsets("g", {("t", 0): 1}, 1.0)
    assert reason == "kafka.ssl.truststore.location is a setting that only the Java client has"


def test_no_broker() -> None:
    """Brokers that do not answer are a reason, within the time."""
    began = _group.time.monotonic()
    admin = GroupAdmin({"kafka.bootstrap.servers": "127.0.0.1:1"})
    assert admin.commit_offsets("g", {("t", 0): 1}, 1.0)
    assert _group.time.monotonic() < began + 4


def test_no_group() -> None:
    """Without a group there is no client, and nothing to do."""
    group = GroupOffsets(None, {}, print)
    group.add(ranges(t=5))
    group.commit()
    assert group._ends == {}
