"""`report` writes one HTML file about a topic, tables, or a run of the pipeline."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark.pipeline import BatchCounts, PartitionCounts, Summary
from tests.cli.command_line import send, start

EVENTS = [to_record(Event(id=str(n), source="/s", type=f"type-{n % 2}", data=b"1234")) for n in range(6)]


@pytest.fixture
def filled(mock_cluster, topic):
    """A topic with six events and a record that is not one, in two partitions."""
    send(mock_cluster, topic, *EVENTS[:4], Record(value=b"foreign"))
    send(mock_cluster, topic, *(Record(value=e.value, headers=e.headers, partition=1) for e in EVENTS[4:]))
    return topic


@pytest.fixture
def report(run, mock_cluster, tmp_path):
    """A function that runs the command, and returns what it prints, and the page."""

    def call(*arguments):
        path = tmp_path / "page.html"
        result = run("report", "--html", path, *arguments)
        assert result.exit_code == 0, result.output
        return result.output, path.read_text("utf-8")

    return call


def test_a_topic(report, mock_cluster, filled):
    """The page has the numbers of all records of the topic, and the command says how many."""
    printed, page = report("-b", mock_cluster, "-t", filled)
    assert printed.endswith("bytes about 6 events and 1 other record\n")
    assert "type-0</span></th><td>3</td>" in page
    assert "not-an-event K-11</th><td>1</td>" in page
    assert f"{filled}[0]@4" in page
    assert "Lag" not in page


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["-n", "2"], "2 events and 0 other records"),
        (["--from", "-1"], "1 event and 1 other record"),
        (["--until", "1"], "2 events and 0 other records"),
        (["-p", "1"], "2 events and 0 other records"),
    ],
)
def test_a_range(report, mock_cluster, filled, options, found):
    """The options of ranges choose what is read."""
    assert found in report("-b", mock_cluster, "-t", filled, *options)[0]


def test_lag_of_a_group(report, mock_cluster, filled):
    """With --group the page has how far the group is behind; the topic is read from the start."""
    consumer = Consumer({"bootstrap.servers": mock_cluster, "group.id": f"{filled}-g", "log_level": 0})
    consumer.commit(offsets=[TopicPartition(filled, 0, 3)], asynchronous=False)
    consumer.close()
    printed, page = report("-b", mock_cluster, "-t", filled, "--group", f"{filled}-g")
    assert "6 events" in printed
    assert "4 offsets behind in 4 partitions" in page
    assert f"{filled}[0]</th><td>3</td><td>5</td><td>2</td>" in page


def summary(offset=9):
    """Return the summary of a run that quarantined two of ten records."""
    counts = BatchCounts(
        read=10,
        events=8,
        quarantined=2,
        by_type={"t": {"binary": 5, "structured": 1}, "(others)": {"binary": 2}},
        by_reason={"broken-event": {"id: must not be empty [R-02]": 2}},
        offsets={"orders": {"0": PartitionCounts(0, offset, 10)}},
    )
    return Summary(
        topics=("orders",),
        events_table="lake/events",
        quarantine_table="lake/quarantine",
        checkpoint="lake/_checkpoint",
        batches=1,
        recovered=None,
        complete=True,
        seconds=2.0,
        counts=counts,
        total=counts,
    )


def test_a_run(report, tmp_path):
    """The page has the numbers of the summary that the pipeline wrote."""
    path = tmp_path / "run.json"
    path.write_text(summary().to_json())
    printed, page = report("--summary-json", path)
    assert printed.endswith("about 8 events and 2 other records\n")
    assert "t</span></th><td>6</td>" in page
    assert "(others)</span></th><td>2</td>" in page
    assert "broken-event id: must not be empty [R-02]</th><td>2</td>" in page
    assert "1 batch in 2.0 s, 5 records/s" in page


def test_lag_of_a_run(report, mock_cluster, filled, tmp_path):
    """With -b the page has how far the run is behind the topic."""
    path = tmp_path / "run.json"
    path.write_text(summary(2).to_json().replace('"orders"', f'"{filled}"'))
    assert "2 offsets behind in 1 partition" in report("-b", mock_cluster, "--summary-json", path)[1]


def test_the_page_is_on_stdout(run, mock_cluster, filled):
    """With - the page is on stdout, and the number of records is not."""
    result = run("report", "-b", mock_cluster, "-t", filled, "--html", "-")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.endswith("</html>\n")
    assert "about 6 events" in result.stderr


def test_a_broken_pipe_ends_quietly(tmp_path):
    """If the program that reads the page closes the pipe, the command ends with 141 and prints nothing."""
    path = tmp_path / "run.json"
    path.write_text(summary().to_json())
    read, write = os.pipe()
    os.close(read)
    process = start("report", "--summary-json", str(path), "--html", "-", stdout=write)
    os.close(write)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "pass one of -t TOPIC, --out DIR, --table NAME or --summary-json FILE"),
        (["-t", "a", "--out", "b"], "pass one of -t TOPIC"),
        (["-t", "a"], "the broker is missing"),
        (["-t", "a", "-b", "127.0.0.1:1", "--from", "stored"], "pass --group, too"),
        (["--summary-json", "no"], "--summary-json: cannot read no: No such file or directory"),
        (["--summary-json", __file__], "must be what pipeline --summary-json writes"),
    ],
)
def test_wrong_use(run, arguments, message):
    """Wrong options and files are refused, with what to do."""
    result = run("report", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_that_cannot_be_written(run, mock_cluster, filled, tmp_path):
    """A folder that is missing is named."""
    result = run("report", "-b", mock_cluster, "-t", filled, "--html", tmp_path / "no" / "page.html")
    assert result.exit_code == 2
    assert "--html: cannot write" in result.stderr


def test_the_extra(run, monkeypatch):
    """Without the package that draws, the command says what to install."""
    monkeypatch.setitem(sys.modules, "pygal", None)
    result = run("report", "-t", "a", "-b", "127.0.0.1:1")
    assert result.exit_code == 2
    assert f"report needs pygal: {pip_install('report')}" in result.stderr


def test_secrets_of_settings(run, mock_cluster, filled):
    """A password of the settings is not on the page."""
    result = run(
        *("report", "-b", mock_cluster, "-t", filled, "--html", "-"),
        *("-X", "ssl.key.password=hunter2", "-X", "spark.hadoop.fs.s3a.secret.key=hunter2"),
    )
    assert result.exit_code == 0, result.stderr
    assert "hunter2" not in result.output


def test_summaries_of_strangers(run, tmp_path):
    """A partition that is not a number is refused."""
    path = Path(tmp_path) / "run.json"
    path.write_text(summary().to_json().replace('"0": {', '"x": {'))
    result = run("report", "--summary-json", path)
    assert result.exit_code == 2
