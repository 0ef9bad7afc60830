"""The command line on a real Kafka: bytes, ranges, signals, pipes, transactions, failures."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.testing import LocalBroker
from tests.cli.command_line import lines, send, start

pytestmark = pytest.mark.broker
COMMAND = f"{sys.executable} -m cloudevents_kafka"
EVENT = to_record(
    Event(id="1", source="/", type="t", datacontenttype="application/json", data=b'{"n": 1.10}')
)
HOSTILE = [
    EVENT,
    Record(key=b"\xff\x00", value=b"\x80", headers=[("x", b"\xfe"), ("x", None), ("é", b""), ("x", b"1")]),
    Record(key=b"tombstone"),
    Record(key=b"", value=b""),
    Record(value=b"\x1b[2J\xc2\x9b", headers=[*EVENT.headers[:3], ("ce_type", b"t"), ("ce_time", b"no")]),
    Record(value=b"{", headers=[("content-type", b"application/cloudevents+json")]),
    to_record(Event(id="2", source="/", type="t", data=[{"a": None}]), mode="structured", format="avro"),
    Record(
        value=b' {"specversion":"1.0",\n"id":"3","source":"/","type":"t"}',
        headers=[("content-type", b"application/cloudevents+json; charset=UTF-8"), ("trace", b"\x00")],
    ),
]


def shell(script: str, servers: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``$C`` is the command line with a broker."""
    env = {**os.environ, "C": COMMAND, "CE_KAFKA_BOOTSTRAP_SERVERS": servers}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        env=env,
        check=False,
        timeout=60,
    )


def stored(servers: str, topic: str, count: int) -> list[tuple[object, ...]]:
    """Return records as the bare client reads them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        messages = consumer.consume(count, 20)
    finally:
        consumer.close()
    return [(m.key(), m.value(), m.headers() or []) for m in messages]


def offsets(result) -> list[int]:
    assert result.exit_code == 0, result.output
    return [line["offset"] for line in lines(result.stdout)]


def test_bytes_survive_the_round_trip(kafka_broker, kafka_topic):
    """``consume | produce`` keeps keys, values, headers and their order, byte for byte."""
    servers = kafka_broker.bootstrap_servers
    copy = kafka_broker.create_topic(f"{kafka_topic}-copy")
    send(servers, kafka_topic, *HOSTILE)
    result = shell(f"$C consume -t {kafka_topic} | $C produce -t {copy}", servers)
    assert (result.returncode, result.stderr) == (
        0,
        "cloudevents-kafka: --lenient would read 1 of 5 records that are not events\n",
    )
    expected = [(record.key, record.value, record.headers) for record in HOSTILE]
    assert stored(servers, copy, len(HOSTILE)) == stored(servers, kafka_topic, len(HOSTILE)) == expected


def test_edited_events_are_sent(kafka_broker, kafka_topic):
    """``consume | sed | produce`` sends the edited event, and the other records unchanged."""
    servers = kafka_broker.bootstrap_servers
    copy = kafka_broker.create_topic(f"{kafka_topic}-edited")
    send(servers, kafka_topic, *HOSTILE)
    edit = 'sed \'s/"type":"t","datacontenttype"/"type":"new","datacontenttype"/\''
    assert shell(f"$C consume -t {kafka_topic} | {edit} | $C produce -t {copy}", servers).returncode == 0
    first, *others = stored(servers, copy, len(HOSTILE))
    assert dict(first[2])["ce_type"] == b"new"
    assert others == [(record.key, record.value, record.headers) for record in HOSTILE[1:]]


def test_times(run, kafka_broker, kafka_topic):
    """A time is the first record from then on; --until stops before it."""
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    for second in (10, 20, 30):
        producer.produce(kafka_topic, b"v", timestamp=1795262400000 + second * 1000)
    assert producer.flush(20) == 0

    def read(*arguments):
        return offsets(run("consume", "-b", servers, "-t", kafka_topic, *arguments))

    assert read("--from", "@2026-11-21T12:00:20Z") == [1, 2]
    assert read("--from", "@2026-11-21T12:00:20.001Z") == [2]
    assert read("--from", "@2026-11-21T13:00:15+01:00", "--until", "@1795262430000") == [1]
    assert read("--until", "@2026-11-21T12:00:20Z") == [0]
    assert read("--from", "@2099-01-01T00:00:00Z") == []
    assert read("--until", "@2099-01-01T00:00:00Z") == [0, 1, 2]


@pytest.mark.parametrize("numbers", [[1], pytest.param([2, 3, 9], marks=pytest.mark.release)])
def test_the_last_records(run, kafka_broker, kafka_topic, numbers):
    """-N is the last N records, also if offsets have none, as markers and aborted records of transactions."""
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": kafka_topic, "log_level": 0})
    producer.init_transactions(20)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(kafka_topic, str(number))
        producer.flush(20)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(20)

    def read(*arguments):
        return offsets(run("consume", "-b", servers, "-t", kafka_topic, *arguments))

    every = read()
    assert len(every) == 3
    for number in numbers:
        assert read("--from", f"-{number}") == every[-number:]
        assert read("--until", f"-{number}") == every[:-number]
        group = ("--group", f"{kafka_topic}-{number}")
        reset = run(
            *("groups", "reset", "-b", servers, *group, "-t", kafka_topic, "--to", f"-{number}", "--apply")
        )
        assert (reset.exit_code, read(*group)) == (0, every[-number:])
    assert read("--from", "-3", "--until", "-1") == every[:-1]


def test_several_topics(run, kafka_broker, kafka_topic):
    """Topics by name, glob or pattern are all read, and counted each; a group continues in each of them."""
    servers, first, second = kafka_broker.bootstrap_servers, f"{kafka_topic}-a", f"{kafka_topic}-b"
    for name, count in ((first, 2), (second, 3)):
        kafka_broker.create_topic(name)
        send(servers, name, *[Record(key=b"%d" % n, value=b"v", headers=EVENT.headers) for n in range(count)])

    def read(command, *arguments):
        result = run(command, "-b", servers, *arguments)
        assert (result.exit_code, result.stderr) == (0, "")
        return lines(result.stdout)

    both = {(first, 0), (first, 1), (second, 0), (second, 1), (second, 2)}
    regex = re.escape(kafka_topic) + "-[ab]"
    for chosen in (("-t", first, "-t", second), ("-t", f"{kafka_topic}-[ab]"), ("--topic-pattern", regex)):
        assert {(one["topic"], one["offset"]) for one in read("consume", *chosen)} == both
        counted = read("stats", *chosen)
        assert [(one["topic"], one["records"]) for one in counted] == [(first, 2), (second, 3)]
    again = read("consume", "-t", second, "-t", f"{kafka_topic}-?", "--from", "-1", "-p", "0")
    assert sorted((one["topic"], one["offset"]) for one in again) == [(first, 1), (second, 2)]
    keyed = ("-t", f"{kafka_topic}-[ab]", "--key", "[12]")
    assert [one["key"] for one in read("consume", *keyed)].count("1") == 2
    assert [one["records"] for one in read("stats", *keyed)] == [1, 2]
    group = ("-t", first, "-t", second, "--group", kafka_topic, "--commit")
    parts = [read("consume", *group, "-n", "2"), read("consume", *group), read("consume", *group)]
    assert [len(part) for part in parts] == [2, 3, 0]
    assert {(one["topic"], one["offset"]) for part in parts for one in part} == both


def test_relative_times(run, kafka_broker, kafka_topic):
    """A time ago and a day are positions, for reading and for groups."""
    servers, now = kafka_broker.bootstrap_servers, int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": servers})
    for hours in (49, 5, 0):
        producer.produce(kafka_topic, b"v", timestamp=now - hours * 3_600_000)
    assert producer.flush(20) == 0

    def read(*arguments):
        return offsets(run("consume", "-b", servers, "-t", kafka_topic, *arguments))

    assert [read("--from", span) for span in ("-1h", "-360m", "-3d")] == [[2], [1, 2], [0, 1, 2]]
    assert read("--until", "-2d") == [0]
    assert read("--from", "@1970-01-01", "--until", "@2026-01-01") == []
    reset = ("groups", "reset", "-b", servers, "--group", "g", "-t", kafka_topic, "--to", "-1h", "-o", "json")
    assert lines(run(*reset).stdout) == [{"topic": kafka_topic, "partition": 0, "from": None, "to": 2}]
    fetched = run("protocol", "fetch", "-b", servers, kafka_topic, "--from", "-1h", "-o", "json")
    assert [line["offset"] for line in lines(fetched.stdout)] == [2]


def test_ends_behind_transactions(run, kafka_broker, kafka_topic):
    """Transaction markers and aborted records at the end of a topic are skipped without waiting."""
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": kafka_topic})
    producer.init_transactions(20)
    for commit in (True, False):
        producer.begin_transaction()
        producer.produce(kafka_topic, b"v")
        producer.flush(20)
        producer.commit_transaction(20) if commit else producer.abort_transaction(20)
    began = time.monotonic()
    assert offsets(run("consume", "-b", servers, "-t", kafka_topic)) == [0]
    assert offsets(run("consume", "-b", servers, "-t", kafka_topic, "--from", "1")) == []
    everything = run("consume", "-b", servers, "-t", kafka_topic, "-X", "isolation.level=read_uncommitted")
    assert offsets(everything) == [0, 2]
    producer.begin_transaction()
    producer.produce(kafka_topic, b"open")
    producer.flush(20)
    assert offsets(run("consume", "-b", servers, "-t", kafka_topic)) == [0]
    producer.abort_transaction(20)
    assert time.monotonic() - began < 12


def test_begins_behind_deleted_records(run, kafka_broker, kafka_topic):
    """If the first records were deleted, reading starts at the first that is left."""
    servers = kafka_broker.bootstrap_servers
    send(servers, kafka_topic, EVENT, EVENT, EVENT)
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition(kafka_topic, 0, 2)]).values():
        future.result(20)
    for start_at in ("earliest", "0", "1", "-9"):
        assert offsets(run("consume", "-b", servers, "-t", kafka_topic, "--from", start_at)) == [2]


def test_follow_ends_by_ctrl_c(kafka_broker, kafka_topic):
    """--follow prints new records; Ctrl-C ends it with 130, whole lines and committed offsets."""
    servers = kafka_broker.bootstrap_servers
    send(servers, kafka_topic, EVENT)
    follow = start(
        "consume", "-b", servers, "-t", kafka_topic, "--follow", "--group", kafka_topic, "--commit"
    )
    assert json.loads(follow.stdout.readline())["offset"] == 0
    send(servers, kafka_topic, EVENT)
    assert json.loads(follow.stdout.readline())["offset"] == 1
    time.sleep(0.5)
    follow.send_signal(signal.SIGINT)
    rest, errors = follow.communicate(timeout=20)
    assert (follow.returncode, rest, errors) == (130, b"", b"")
    again = start("consume", "-b", servers, "-t", kafka_topic, "--group", kafka_topic)
    assert again.communicate(timeout=20)[0] == b""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_produce_ended_by_a_signal_has_delivered(kafka_broker, kafka_topic, number, code):
    """After a signal during a wait for input, `produce` delivers the lines read and prints their number."""
    servers = kafka_broker.bootstrap_servers
    process = start("produce", "-b", servers, "-t", kafka_topic, "-X", "linger.ms=5000")
    line = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}\n'
    process.stdin.write(line * 500)
    process.stdin.flush()
    while fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)) != bytes(4):
        time.sleep(0.05)  # until the process has read the lines
    time.sleep(1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == code
    [delivered] = re.findall(rb"interrupted; (\d+) records delivered", errors)
    assert len(stored(servers, kafka_topic, 500)) == int(delivered) == 500


@pytest.mark.parametrize(("option", "count"), [("", 2000), ("--follow", 2000), ("--follow", 1)])
def test_a_broken_pipe_ends_quietly(kafka_broker, kafka_topic, option, count):
    """When `head` closes the pipe, `consume` ends with 141 and nothing on stderr, also on a quiet topic."""
    servers = kafka_broker.bootstrap_servers
    send(servers, kafka_topic, *[EVENT] * count)
    result = shell(f"$C consume -t {kafka_topic} {option} | head -1; echo ${{PIPESTATUS[0]}}", servers)
    first, code = result.stdout.splitlines()
    assert (json.loads(first)["offset"], result.stderr) == (0, "")
    assert code == "141"


def test_missing_topics(run, kafka_broker):
    """A missing topic and an invalid topic name are bad usage."""
    servers = kafka_broker.bootstrap_servers
    result = run("consume", "-b", servers, "-t", "nowhere")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"broker {servers} has no topic 'nowhere'" in result.stderr
    result = run("produce", "-b", servers, "-t", "no/where", "--source", "/", "--type", "t")
    assert result.exit_code == 2
    assert "a topic name must have 1 to 249 letters, digits, '.', '_' and '-' only, got 'no/" in result.stderr


def test_no_command_creates_a_topic(run, kafka_broker, kafka_topic):
    """A misspelled topic is refused with near names and stays missing, though the broker would create it."""
    servers, wrong = kafka_broker.bootstrap_servers, f"{kafka_topic}x"
    send(servers, kafka_topic, EVENT)
    event = ("--source", "/", "--type", "t")
    for command in (
        ("produce", "-b", servers, "-t", wrong, *event),
        ("replay", "-b", servers, "-t", kafka_topic, "--to", wrong, "--send"),
        ("protocol", "produce", "-b", servers, wrong, "x"),
        ("protocol", "fetch", "-b", servers, wrong),
        ("consume", "-b", servers, "-t", wrong),
        ("stats", "-b", servers, "-t", wrong),
        ("topics", "-b", servers, wrong),
    ):
        result = run(*command)
        assert result.exit_code == 2, command
        assert f"broker {servers} has no topic {wrong!r}; did you mean " in result.stderr
        assert repr(kafka_topic) in result.stderr
    stdin = json.dumps({"topic": wrong, "value": "x"})
    assert f"stdin:1: broker {servers} has no topic" in run("produce", "-b", servers, stdin=stdin).stderr
    assert wrong not in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=20).topics
    created = run("produce", "-b", servers, "-t", wrong, *event, "-X", "allow.auto.create.topics=true")
    assert (created.exit_code, created.stderr) == (0, "")
    assert len(stored(servers, wrong, 1)) == 1


@pytest.mark.release
def test_rights_decide_about_a_topic(run):
    """With the right to write alone records are sent; a topic that may not be described is refused."""
    anyone = ("User:*", "*")
    rights = [
        AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, *anyone, operation, kind)
        for topic, operation, kind in (
            ("inbox", AclOperation.WRITE, AclPermissionType.ALLOW),
            ("secret", AclOperation.WRITE, AclPermissionType.ALLOW),
            ("secret", AclOperation.DESCRIBE, AclPermissionType.DENY),
        )
    ]
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": True,
    }
    with LocalBroker(properties=properties) as broker:
        servers = broker.bootstrap_servers
        for topic in ("inbox", "secret"):
            broker.create_topic(topic)
        admin = AdminClient({"bootstrap.servers": servers})
        for done in admin.create_acls(rights).values():
            done.result(20)
        codes = {"inbox": (0, 0, 3, 3), "secret": (3, 3, 3, 3)}
        for topic, expected in codes.items():
            commands = (
                ("produce", "-t", topic, "--source", "/", "--type", "t"),
                ("protocol", "produce", topic, "x"),
                ("protocol", "fetch", topic),
                ("consume", "-t", topic),
            )
            for command, code in zip(commands, expected, strict=True):
                result = run(*command, "-b", servers)
                assert result.exit_code == code, (command, result.stderr)
                assert ("ask for this permission" in result.stderr) == (code == 3), command


def test_missing_partitions(run, kafka_broker, kafka_topic):
    """A partition that the topic does not have is bad usage, or a bad line, before anything is sent."""
    produce = ("produce", "-b", kafka_broker.bootstrap_servers)
    wrong = run(*produce, "-t", kafka_topic, "--partition", "99", "--source", "/", "--type", "t")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert f"topic {kafka_topic!r} has no partition 99; it has partition 0" in wrong.stderr
    stdin = "".join(json.dumps({"partition": n, "value": "x"}) + "\n" for n in (0, 7))
    lines = run(*produce, "-t", kafka_topic, "--keep-partitions", stdin=stdin)
    assert lines.exit_code == 1
    assert f"stdin:2: topic {kafka_topic!r} has no partition 7" in lines.stderr
    assert "1 bad line; 1 record delivered" in lines.stderr


def test_a_record_too_large_for_the_broker(run, kafka_broker):
    """A record that the broker refuses is reported with its line, the others are delivered; exit code 3."""
    servers = kafka_broker.bootstrap_servers
    topic = kafka_broker.create_topic("narrow", config={"max.message.bytes": 500})
    given = "".join(json.dumps({"key": None, "value": "x" * size}) + "\n" for size in (1, 1000, 2))
    result = run(
        "produce", "-b", servers, "-t", topic, "-X", "linger.ms=0", "-X", "batch.num.messages=1", stdin=given
    )
    assert result.exit_code == 3
    assert "stdin:2: not delivered: " in result.stderr
    assert result.stderr.count("not delivered") == 2
    assert [value for _, value, _ in stored(servers, topic, 2)] == [b"x", b"xx"]


def test_what_a_topic_does_not_take_has_advice(run, kafka_broker, kafka_topic):
    """A compacted topic refuses a record without a key, and one for recent records an old one: what to do."""
    servers = kafka_broker.bootstrap_servers
    cases = [
        ({"cleanup.policy": "compact"}, {}, "pass --key or --key-from"),
        ({"message.timestamp.before.max.ms": 1000}, {"timestamp": 1}, "leave out --keep-timestamps"),
        ({"max.message.bytes": 500}, {"value": "x" * 1000}, "max.message.bytes of the topic"),
    ]
    for number, (config, record, advice) in enumerate(cases):
        topic = kafka_broker.create_topic(f"{kafka_topic}-{number}", config=config)
        stdin = json.dumps({"value": "x", **record})
        result = run("produce", "-b", servers, "-t", topic, "--keep-timestamps", stdin=stdin)
        assert result.exit_code == 3
        last = result.stderr.splitlines()[-1]
        assert last.startswith("cloudevents-kafka: 1 of 1 record not delivered; ")
        assert advice in last


@pytest.mark.release
@pytest.mark.slow
def test_a_broker_that_stops():
    """`produce` fails within the timeout if its broker stops, and `consume --follow` waits for it."""
    with LocalBroker() as broker:
        servers = broker.bootstrap_servers
        broker.create_topic("t")
        send(servers, "t", EVENT)
        reading = start("consume", "-b", servers, "-t", "t", "--follow")
        assert reading.stdout.readline()
        writing = start("produce", "-b", servers, "-t", "t", "--timeout", "2", "-X", "linger.ms=0")
        line = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}\n'
        writing.stdin.write(line)
        writing.stdin.flush()
        assert reading.stdout.readline()
        broker.kill()
        writing.stdin.write(line)
        began = time.monotonic()
        _, errors = writing.communicate(timeout=30)
        assert writing.returncode == 3
        assert f"broker {servers} did not answer within 2 s for 1 of 2 records" in errors.decode()
        assert time.monotonic() - began < 15
        assert reading.stderr.readline().startswith(b"cloudevents-kafka: the brokers cannot be reached")
        broker.start()
        send(servers, "t", EVENT)
        assert json.loads(reading.stdout.readline())["event"]["id"] == "1"
        reading.send_signal(signal.SIGINT)
        assert reading.wait(20) == 130
        reading.communicate()


@pytest.mark.slow
def test_broker_command(run):
    """`broker` prints its address, has its topics, and ends cleanly by Ctrl-C."""
    process = start("broker", "--topic", "orders:3", "--topic", "more")
    servers = process.stdout.readline().decode().strip()
    try:
        assert re.fullmatch(r"127\.0\.0\.1:\d+", servers)
        assert (
            run(
                "produce", "-b", servers, "-t", "orders", "--partition", "2", "--source", "/", "--type", "t"
            ).exit_code
            == 0
        )
        assert run("consume", "-b", servers, "-t", "more").stdout == ""
    finally:
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest, errors) == (130, b"", b"")
    assert run("consume", "-b", servers, "-t", "more", "--timeout", "0.6").exit_code == 3


@pytest.mark.parametrize("text", ["", ":3", "a:", "a:0", "a:x", "a:٣"])
def test_bad_topics_for_the_broker(run, text):
    """A topic that is not NAME or NAME:N is refused before the broker starts."""
    result = run("broker", "--topic", text)
    assert result.exit_code == 2
    assert "a topic must be NAME" in result.stderr


def test_a_letter_that_a_topic_does_not_take(run, kafka_broker, kafka_topic):
    """A broker refuses a whole batch for one large record: the others are sent once, and that one stays."""
    servers = kafka_broker.bootstrap_servers
    origin = kafka_broker.create_topic(f"{kafka_topic}-small", config={"max.message.bytes": 2000})
    sizes = [100] * 5 + [3000] + [100] * 5 + [3000]
    send(
        servers,
        kafka_topic,
        *(Record(value=bytes(size), headers=[("dlq_topic", origin.encode())]) for size in sizes),
    )
    for expected, code in ((10, 1), (0, 0)):
        result = run("replay", "-b", servers, "-t", kafka_topic, "--send", "--group", f"{kafka_topic}-g")
        assert (result.exit_code, f"{expected} sent" in result.stdout) == (code, True), result.output
    assert [len(value) for _, value, _ in stored(servers, origin, 10)] == [100] * 10
