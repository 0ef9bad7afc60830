"""Landing, without Spark: batches killed at every step land once, and whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cloudevents_kafka.spark.landing import Landing, WrongCheckpoint, final_path
from cloudevents_kafka.spark.store import InUse, LocalStore
from cloudevents_kafka.spark.tally import Miscounted, Offsets, Tally

FILES = (
    "events/event_type=a/part-0.parquet",
    "events/event_type=b/part-1.parquet",
    "quarantine/verdict=x/p.parquet",
)


class Killed(BaseException):
    """The process was killed."""


class MortalStore(LocalStore):
    """Dies before its n-th change of anything, or just after it."""

    def __init__(self, root: Path, changes: int, *, after: bool) -> None:
        super().__init__(root)
        self.left = changes
        self.after = after

    def _change(self, change: Callable[[], None]) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        change()
        if self.left == 0:
            raise Killed

    def create(self, path: str, content: bytes) -> None:
        self._change(lambda: LocalStore.create(self, path, content))

    def rename(self, path: str, to: str) -> None:
        self._change(lambda: LocalStore.rename(self, path, to))

    def remove(self, path: str) -> None:
        self._change(lambda: LocalStore.remove(self, path))


def tally_of(batch: int) -> Tally:
    first = batch * 3
    return Tally(
        read=3,
        events=2,
        quarantined=1,
        by_type={"a": {"binary": 1}, "b": {"binary": 1}},
        by_reason={"x": {"bad": 1}},
        offsets={"t": {"0": Offsets(first, first + 2, 3)}},
    )


def writer(store: LocalStore, batch: int, root: Path) -> Callable[[str], Tally]:
    def write(url: str) -> Tally:
        folder = Path(url.removeprefix("file://"))
        for file in FILES:
            path = folder / file
            path.parent.mkdir(parents=True)
            path.write_text(f"batch {batch}")
        return tally_of(batch)

    return write


def land(store: LocalStore, root: Path, batches: int) -> Landing:
    """Do as Spark does after a start: play the first batch that is not known to be done, and go on."""
    landing = Landing(store)
    landing.recover()
    done = root / "done"
    first = int(done.read_text()) + 1 if done.exists() else 0
    for batch in range(first, batches):
        landing.land(batch, "query", writer(store, batch, root))
        done.write_text(str(batch))
    return landing


def tables(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for table in ("events", "quarantine")
        for path in sorted((root / table).rglob("*.parquet"))
    }


WHOLE = {final_path(file, batch): f"batch {batch}" for batch in range(3) for file in FILES}


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk, a thousand times: no power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_and_started_again(tmp_path: Path, *, after: bool) -> None:
    """Whatever change the process dies before or after, a new start leaves each file once."""
    for changes in range(1, 60):
        root = tmp_path / str(changes)
        try:
            land(MortalStore(root, changes, after=after), root, 3)
        except Killed:
            seen = tables(root)
            assert seen.items() <= WHOLE.items()
            landing = land(LocalStore(root), root, 3)
            assert tables(root).items() >= seen.items(), "a file that a reader may have seen went away"
        else:
            assert changes > 10
            return
        assert tables(root) == WHOLE
        assert landing.total == tally_of(0).plus(tally_of(1)).plus(tally_of(2))
        assert LocalStore(root).names("_staging") == []
    pytest.fail("it never came to its end")


def test_killed_twice(tmp_path: Path) -> None:
    """A start that is killed while it finishes what a killed start left is finished by the next."""
    for one in range(2, 12):
        for two in range(1, 8):
            root = tmp_path / f"{one}-{two}"
            for changes in (one, two):
                with suppress(Killed):
                    land(MortalStore(root, changes, after=False), root, 3)
            land(LocalStore(root), root, 3)
            assert tables(root) == WHOLE


def test_batch_played_again_is_not_written_again(tmp_path: Path) -> None:
    """A batch that landed, but of which Spark does not know, is left as it is."""
    store = LocalStore(tmp_path)
    landing = Landing(store)
    assert landing.land(0, "query", writer(store, 0, tmp_path)) is not None
    again = Landing(store)
    assert again.recover() is None
    assert again.land(0, "query", lambda _: pytest.fail("written again")) is None
    assert again.total == tally_of(0)


@pytest.mark.parametrize(
    ("batch", "query", "words"),
    [(0, "other", "another checkpoint"), (1, "other", "another checkpoint"), (2, "query", "are not here")],
)
def test_foreign_checkpoint(tmp_path: Path, batch: int, query: str, words: str) -> None:
    """A checkpoint that does not belong to the folder is refused, before anything is written."""
    store = LocalStore(tmp_path)
    landing = Landing(store)
    landing.land(0, "query", writer(store, 0, tmp_path))
    with pytest.raises(WrongCheckpoint, match=words):
        landing.land(batch, query, writer(store, batch, tmp_path))
    assert store.names("_staging") == []


def test_checkpoint_ahead_of_an_empty_folder(tmp_path: Path) -> None:
    """A checkpoint that has landed batches elsewhere does not go on in an empty folder."""
    store = LocalStore(tmp_path)
    with pytest.raises(WrongCheckpoint, match="no batch"):
        Landing(store).land(7, "query", writer(store, 7, tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        Tally(
            read=3,
            events=2,
            quarantined=0,
            by_type={"a": {"binary": 2}},
            offsets={"t": {"0": Offsets(0, 2, 3)}},
        ),
        Tally(read=2, events=2, by_type={"a": {"binary": 1}}, offsets={"t": {"0": Offsets(0, 2, 2)}}),
        Tally(read=1, events=1, by_type={"a": {"binary": 1}}, offsets={"t": {"0": Offsets(0, 2, 3)}}),
    ],
)
def test_counts_that_do_not_add_up(tmp_path: Path, wrong: Tally) -> None:
    """A batch whose counts contradict each other does not land."""
    landing = Landing(LocalStore(tmp_path))
    with pytest.raises(Miscounted, match="come to"):
        landing.land(0, "query", lambda _: wrong)
    assert landing.total == Tally()
    assert tables(tmp_path) == {}


def test_offsets_that_landed_before(tmp_path: Path) -> None:
    """A record whose offset is not behind all that landed is not landed a second time."""
    store = LocalStore(tmp_path)
    landing = Landing(store)
    landing.land(0, "query", writer(store, 0, tmp_path))
    with pytest.raises(Miscounted, match=r"t\[0\]@0 was to be landed"):
        landing.land(1, "query", lambda _: tally_of(0))


def test_damaged_note(tmp_path: Path) -> None:
    """A note that is not what was written is named, and nothing is guessed."""
    store = LocalStore(tmp_path)
    store.create("_batches/00000000.json", b"{}")
    with pytest.raises(WrongCheckpoint, match="no note of a batch"):
        Landing(store).recover()


def test_old_notes_go(tmp_path: Path) -> None:
    """Only as many notes stay as Spark could go back by; the counts of all stay in the last."""
    store = LocalStore(tmp_path)
    landing = Landing(store)
    for batch in range(105):
        landing.land(batch, "query", lambda _, batch=batch: tally_of(batch))  # type: ignore[misc]
    assert len(store.names("_batches")) == 100
    again = Landing(store)
    again.recover()
    assert again.total.read == 105 * 3


def test_one_pipeline_at_a_time(tmp_path: Path) -> None:
    """A folder that a pipeline fills is refused to a second one, until the first has let go."""
    one, two = LocalStore(tmp_path), LocalStore(tmp_path)
    one.lock()
    with pytest.raises(InUse, match="being filled by another pipeline"):
        two.lock()
    one.close()
    two.lock()
    two.close()


def test_types_without_number_do_not_fill_memory() -> None:
    """Counts by type stay bounded when each event has a type of its own, and still add up."""
    total = Tally()
    for batch in range(4):
        by_type = {f"type-{batch}-{number}": {"binary": 1} for number in range(600)}
        first = batch * 600
        offsets = {"t": {"0": Offsets(first, first + 599, 600)}}
        total = total.plus(Tally(read=600, events=600, by_type=by_type, offsets=offsets)).checked()
    assert len(total.by_type) == 1000
    assert total.events == 2400


def test_offsets_between_two_runs_are_told() -> None:
    """Records that expired between two runs show as offsets passed without a record."""
    before = Tally(offsets={"t": {"0": Offsets(10, 19, 8)}})
    total = before.plus(Tally(offsets={"t": {"0": Offsets(70, 79, 10), "1": Offsets(0, 3, 2)}}))
    assert total.skipped_since(before) == {"t": {"0": 50, "1": 2}}
