"""The figures of batches in JSON lines, in a file for Prometheus, and at a port; without Spark."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark.pipeline import BatchCounts, BatchProgress, PartitionCounts, PipelineFailed
from cloudevents_kafka.spark.pipeline.watching import FIGURES, PREFIX, Metrics, _metrics, split_address
from cloudevents_kafka.spark.pipeline.watching._figures import Lags
from tests.support.prometheus import samples

NOW = 1_700_000_000.0
BATCH = BatchProgress(
    number=3,
    counts=BatchCounts(
        read=10,
        events=8,
        quarantined=2,
        by_type={"a.b": {"binary": 5, "structured": 1}, 'x"\n{}\ud800': {"binary": 2}},
        by_reason={"broken-event": {"id: must not be empty [R-02]": 1}, "not-an-event": {"no headers": 1}},
        offsets={"t": {"0": PartitionCounts(0, 9, 10, round(NOW * 1000) - 5000)}},
    ),
    seconds=0.5,
    behind=7,
    lags={"t[0]": 7, "t[1]": 0},
    steps={"plan": 0.1, "write": 0.4},
    rows={"events": 8, "quarantine": 2},
)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_metrics.time, "time", lambda: NOW)


def scrape(metrics: Metrics) -> dict[str, Any]:
    assert metrics.url is not None
    with urllib.request.urlopen(metrics.url) as answer:
        return samples(answer.read().decode())


@pytest.fixture
def served() -> Iterator[Metrics]:
    with closing(Metrics(port=0)) as metrics:
        yield metrics


def test_port(served: Metrics) -> None:
    """A scrape has the sums of all batches, and the newest lags."""
    served.add(BATCH)
    served.add(BATCH)
    found = scrape(served)
    assert found["batches_total",] == 2
    assert found["records_total",] == 20
    assert found["events_total", "a.b"] == 12
    assert found["events_total", 'x"\n{}?'] == 4
    assert found["quarantined_records_total", "broken-event", "R-02"] == 2
    assert found["quarantined_records_total", "not-an-event", ""] == 2
    assert found["counted_rows_total", "events"] == found["committed_rows_total", "events"] == 16
    assert found["step_seconds_total", "write"] == pytest.approx(0.8)
    assert found["batch_seconds_total",] == 1.0
    assert found["records_per_second",] == 20
    assert found["lag_records", "t", "0"] == 7
    assert (found["lag_seconds", "t", "0"], found["lag_seconds", "t", "1"]) == (5, 0)
    served.stopped.add("t")
    served.add(BatchProgress(number=4, counts=BatchCounts(), behind=1, lags={"u[0]": 1}))
    found = scrape(served)
    assert found["topic_stopped", "t"] == 1
    assert [key for key in found if key[0].startswith("lag_")] == [("lag_records", "u", "0")]


def test_lags_grow_between_batches(served: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of the newest record is counted again while no batch comes."""
    served.add(BATCH)
    monkeypatch.setattr(_metrics, "_LAG_SECONDS", 0.0)
    monkeypatch.setattr(_metrics.time, "time", lambda: NOW + 30)
    served.look()
    assert scrape(served)["lag_seconds", "t", "0"] == 35


def test_a_record_of_the_future_is_as_old_as_its_landing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One record of a wrong clock does not hide the lag of its partition, nor of later records."""

    def land(lags: Lags, age: float, of: str = "0") -> None:
        newest = round((NOW - age) * 1000)
        counts = BatchCounts(offsets={"t": {of: PartitionCounts(0, 0, 1, newest)}})
        lags.add(BatchProgress(number=1, counts=counts, behind=1, lags={f"t[{of}]": 1}))

    lags = Lags()
    land(lags, -86_400)
    assert lags.seconds(NOW + 30) == {("t", "0"): 30}
    monkeypatch.setattr(_metrics.time, "time", lambda: NOW + 60)
    land(lags, -50)  # a true time by now
    assert lags.seconds(NOW + 70) == {("t", "0"): 20}
    land(lags, 5)  # older ones hide nothing
    assert lags.seconds(NOW + 70) == {("t", "0"): 20}


def test_names_are_those_of_the_table(served: Metrics) -> None:
    """Each figure is described, by names as Prometheus wants them."""
    assert served.url is not None
    with urllib.request.urlopen(served.url) as answer:
        text = answer.read().decode()
    for figure in FIGURES:
        kind = "counter" if figure.is_counter else "gauge"
        assert f"# HELP {PREFIX}{figure.name} {figure.text}\n# TYPE {PREFIX}{figure.name} {kind}\n" in text


def test_reports_of_other_sources(served: Metrics) -> None:
    """What Spark reports of a query without Kafka has no lag, and may have no numbers."""
    source = {"description": "rate", "endOffset": 5, "latestOffset": None}
    served.add_report({"batchId": 1, "numInputRows": None, "durationMs": {}, "sources": [source]})
    assert scrape(served)["batches_total",] == 1


def test_few_types_have_labels(served: Metrics) -> None:
    """The types that came first keep their names; all others are one."""
    for first in range(0, 1000, 100):
        names = {f"type-{number}": {"binary": 1000 - number} for number in range(first, first + 100)}
        served.add(BatchProgress(number=0, counts=BatchCounts(by_type=names)))
    found = {key[1]: value for key, value in scrape(served).items() if key[0] == "events_total"}
    assert len(found) == _metrics.MOST_LABELS
    assert sum(found.values()) == sum(1000 - number for number in range(1000))
    assert found["type-0"] == 1000
    assert "(others)" in found


def test_file_of_prometheus(tmp_path: Path) -> None:
    """The file is whole, and has what a scrape has; nothing else is left in its folder."""
    path = tmp_path / "ce.prom"
    with closing(Metrics(str(path))) as metrics:
        assert samples(path.read_text())["batches_total",] == 0
        metrics.add(BATCH)
        assert samples(path.read_text())["events_total", "a.b"] == 6
    assert list(tmp_path.iterdir()) == [path]


def test_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch has a line with its own numbers, after those that were there; an idle one has the lags."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"earlier": 1}\n')
    metrics = Metrics(str(path))
    metrics.add(BATCH)
    metrics.add(BATCH)
    metrics.look()
    monkeypatch.setattr(_metrics, "_IDLE_SECONDS", 0.0)
    metrics.look()
    earlier, _, line, idle = map(json.loads, path.read_text().splitlines())
    assert earlier == {"earlier": 1}
    assert (line["batch"], idle["batch"]) == (3, None)
    assert line["events"] == {"a.b": 6, 'x"\n{}?': 2}
    assert line["quarantined_records"] == {"broken-event/R-02": 1, "not-an-event/": 1}
    assert (line["records"], line["records_per_second"], line["batch_seconds"]) == (10, 20, 0.5)
    assert line["lag_records"] == idle["lag_records"] == {"t/0": 7, "t/1": 0}
    assert line["step_seconds"] == {"plan": 0.1, "write": 0.4}
    assert line["counted_rows"] == line["committed_rows"] == {"events": 8, "quarantine": 2}
    assert "events" not in idle


def test_json_lines_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Prometheus needs the extra, which the error names."""
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    Metrics(str(tmp_path / "metrics.jsonl")).add(BATCH)
    for outputs in ({"port": 0}, {"file": str(tmp_path / "x.prom")}):
        with pytest.raises(ModuleNotFoundError, match=re.escape(pip_install("metrics"))):
            Metrics(**outputs)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["missing/metrics.jsonl", "missing/metrics.prom"])
def test_file_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    """The start has an error with the file, which a new start does not mend."""
    with pytest.raises(PipelineFailed, match=f"a file that can be written.*{name}") as failed:
        Metrics(str(tmp_path / name))
    assert failed.value.final


def test_port_that_is_taken() -> None:
    """The start has an error with the port, which a new start does not mend."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PipelineFailed, match=f"a free port of this machine.*{port}.*in use") as failed:
            Metrics(port=port)
    assert failed.value.final


@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics.prom"])
def test_later_failures_warn_once(tmp_path: Path, name: str) -> None:
    """A folder that is gone meanwhile is one warning."""
    folder, warnings = tmp_path / "folder", list[str]()
    folder.mkdir()
    metrics = Metrics(str(folder / name), warn=warnings.append)
    (folder / name).unlink()
    folder.rmdir()
    metrics.add(BATCH)
    metrics.add(BATCH)
    (warning,) = warnings
    assert f"{name}: " in warning
    folder.mkdir()
    metrics.add(BATCH)
    assert (folder / name).read_text()


@pytest.mark.parametrize(
    ("port", "address"),
    [
        (0, ("127.0.0.1", 0)),
        ("9108", ("127.0.0.1", 9108)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:2", ("::1", 2)),
    ],
)
def test_addresses(port: int | str, address: tuple[str, int]) -> None:
    """The host is this machine's loopback unless it is named."""
    assert split_address(port) == address


@pytest.mark.parametrize("port", ["", "x", -1, 65536, "host", "host:", "1:2:x"])
def test_wrong_addresses(port: int | str) -> None:
    """Anything else is an error with both forms."""
    with pytest.raises(ValueError, match="metrics_port must be PORT or HOST:PORT"):
        split_address(port)
