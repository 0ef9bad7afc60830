"""The commands that connect to a broker, on fake brokers in this process."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time

import pytest
from confluent_kafka import Producer

from cloudevents_kafka.cli.commands.protocol import fetch
from cloudevents_kafka.cli.commands.protocol._connection import ConnectionOptions, connect
from cloudevents_kafka.cli.commands.protocol.produce import CODECS
from cloudevents_kafka.cli.kafka.settings import load_settings
from cloudevents_kafka.positions import Position
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.testing import LocalBroker
from tests.cli.command_line import lines, start
from tests.support.wire_broker import WireBroker

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def broker():
    with WireBroker("4.3") as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def old_broker():
    with WireBroker("0.8.2") as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def closed_port():
    with socket.socket() as taken:  # and does not listen
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent_server():
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


# --- api-versions ------------------------------------------------------------------------


def test_api_versions(run, broker):
    """Each API has the versions of the broker, of this library and of its client, and the picked one."""
    result = run("protocol", "api-versions", "-b", broker)
    assert (result.exit_code, result.stderr) == (0, "")
    head, first, *_ = (line.split() for line in result.stdout.splitlines())
    assert head == ["key", "api", "broker", "declared", "client", "picks"]
    assert first == ["0", "Produce", "0-13", "0-13", "0-12", "12"]
    rows = {
        row["key"]: row for row in lines(run("protocol", "api-versions", "-b", broker, "-o", "json").stdout)
    }
    assert list(rows[0]) == head
    assert list(rows[0].values()) == [0, "Produce", "0-13", "0-13", "0-12", 12]
    assert {row["api"] for row in rows.values()} >= {api.name for api in APIS.values()}


def test_api_versions_of_an_old_broker(run, old_broker):
    """For a broker that does not list its versions, those of such brokers are printed with a note."""
    result = run("protocol", "api-versions", "-b", old_broker)
    assert result.exit_code == 0
    assert f"broker {old_broker} does not list its API versions" in result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["0", "Produce", "0", "0-13", "0-12", "0"] in rows
    assert ["18", "ApiVersions", "-", "0-5", "0-3", "-"] in rows


def test_positions_of_fetch_are_in_its_help(run):
    """The help of fetch has each form of a position that fetch accepts."""
    text = run("protocol", "fetch", "--help").stdout
    assert all(form in text for form in ("earliest", "latest", "-N", "-1h", "@2026-11-26", "@TIME"))
    assert "stored" not in text


# --- produce and fetch -------------------------------------------------------------------


def test_codecs():
    """The command has the codecs of the client."""
    assert tuple(codec.name.lower() for codec in Codec) == CODECS


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(run, broker, topic, codec):
    """``fetch`` reads the key, the headers and the value that ``produce`` sends."""
    sent = run(
        *("protocol", "produce", "-b", broker, topic, "--key", "k", "--header", "a=1", "--header", "n"),
        *("--compression", codec, "hello"),
    )
    assert (sent.exit_code, sent.stdout, sent.stderr) == (0, f"{topic}[0]@0\n", "")
    result = run("protocol", "fetch", "-b", broker, topic, "-o", "json")
    [found] = lines(result.stdout)
    assert (result.exit_code, found.pop("timestamp") > 0) == (0, True)
    assert found == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "key": "k",
        "headers": [["a", "1"], ["n", None]],
        "value": "hello",
    }
    text = run("protocol", "fetch", "-b", broker, topic).stdout.splitlines()
    assert text[0].startswith(f"{topic}[0]@0  ")
    assert [line.split() for line in text[1:4]] == [
        ["header", "a", "=", "1"],
        ["header", "n", "is", "null"],
        ["value", "hello"],
    ]


def test_old_brokers(run, old_broker, topic):
    """A broker of 0.8.2 stores and returns records; headers, which it does not support, are refused."""
    assert run("protocol", "produce", "-b", old_broker, topic, "x", "-o", "json").stdout.endswith(
        '"offset":0}\n'
    )
    assert lines(run("protocol", "fetch", "-b", old_broker, topic, "-o", "json").stdout)[0]["value"] == "x"
    refused = run("protocol", "produce", "-b", old_broker, topic, "x", "--header", "a=1")
    assert refused.exit_code == 3
    assert "brokers before 0.11 have no headers" in refused.stderr


def test_values(run, broker, topic):
    """A value is text, the bytes of stdin, or null."""
    assert run("protocol", "produce", "-b", broker, topic, stdin=b"\xff\n").exit_code == 0
    assert run("protocol", "produce", "-b", broker, topic, "-", stdin=b"").exit_code == 0
    assert run("protocol", "produce", "-b", broker, topic, "--null").exit_code == 0
    found = lines(run("protocol", "fetch", "-b", broker, topic, "-o", "json").stdout)
    assert [line["value"] for line in found] == [{"base64": "/wo="}, "", None]


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ([], [0, 1, 2, 3]),
        (["--count", "2"], [0, 1]),
        (["--from", "2"], [2, 3]),
        (["--from", "99"], []),
        (["--from", "-1"], [3]),
        (["--from", "latest"], []),
        (["--from", "@0"], [0, 1, 2, 3]),
        (["--from", "@1969-12-31T23:59:59.999Z"], [0, 1, 2, 3]),
        (["--from", "@2100-01-01T00:00:00Z"], []),
    ],
)
def test_positions(run, broker, topic, arguments, offsets):
    """Records are read from --offset to the end of the partition, or to --count."""
    for number in range(4):
        run("protocol", "produce", "-b", broker, topic, str(number))
    result = run("protocol", "fetch", "-b", broker, topic, "0", "-o", "json", *arguments)
    assert (result.exit_code, [line["offset"] for line in lines(result.stdout)]) == (0, offsets)


def test_all_partitions(run, topic):
    """Without a partition all partitions are read."""
    with WireBroker("4.3") as broker:
        broker.create_topic(topic, 3)
        servers = broker.bootstrap_servers
        for partition in (0, 2, 2):
            run("protocol", "produce", "-b", servers, topic, "x", "--partition", partition)
        found = lines(run("protocol", "fetch", "-b", servers, topic, "-o", "json").stdout)
        assert sorted((line["partition"], line["offset"]) for line in found) == [(0, 0), (2, 0), (2, 1)]


def test_a_slow_reader_is_no_silence_of_the_broker(run, broker, topic):
    """The timeout does not count while the output waits for its reader, such as a pager."""
    for value in "abc":
        run("protocol", "produce", "-b", broker, topic, value)
    settings = load_settings(None, {}, [], broker)
    options = ConnectionOptions(broker=broker, settings=settings, trace=None, timeout=0.5)
    found = []
    with connect(options) as client:
        for record in fetch._read(client, options, topic, None, Position("earliest")):
            found.append(record.value)
            time.sleep(0.6)
    assert found == [b"a", b"b", b"c"]


class SkippingConsumer:
    """A consumer that fetches records of aborted transactions only, a few at each poll."""

    fetched = 0

    def poll(self, timeout):
        time.sleep(0.02)
        self.fetched += 1

    def fetch_position(self, partition):
        return self.fetched


def test_aborted_records_are_an_answer_of_the_broker():
    """The timeout starts again with each answer, also if its records were aborted and are not printed."""
    settings = load_settings(None, {}, [], None)
    options = ConnectionOptions(broker="h:1", settings=settings, trace=None, timeout=0.05)
    assert [*fetch._read_until(SkippingConsumer(), options, "t", {0: 8})] == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fetch", "-b", "BROKER", "nothing"], 2, "has no topic 'nothing'; check TOPIC"),
        (["fetch", "-b", "BROKER", "known", "7"], 2, "topic 'known' has no partition 7; it has partition 0"),
        (["fetch", "-b", "BROKER", "known", "--from", "stored"], 2, "(a time, in ms), got 'stored'"),
        (["fetch", "-b", "BROKER", "known", "--from", "x"], 2, "a position must be"),
        (["produce", "-b", "BROKER", "known", "x", "--null"], 2, "--null and VALUE exclude each other"),
        (
            ["produce", "-b", "BROKER", "known", "x", "--partition", "7", "--timeout", "0.3"],
            2,
            "topic 'known' has no partition 7; it has partition 0",
        ),
        (
            ["produce", "-b", "BROKER", "known", "x", "-X", "security.protocol=x"],
            2,
            "security.protocol must be one",
        ),
        (
            ["produce", "-b", "BROKER", "known", "x", "--trace", "/no/where"],
            2,
            "--trace: cannot write /no/where",
        ),
        (["api-versions", "-b", "a:b"], 2, "-b: an address must be host:port, got 'a:b'"),
        (["api-versions", "-b", "CLOSED", "--timeout", "0.3"], 3, "check -b, that a broker listens there"),
        (["fetch", "-b", "CLOSED", "t", "--timeout", "0.3"], 3, "check -b, that a broker listens there"),
        (
            ["produce", "-b", "CLOSED", "t", "x", "--timeout", "0.3"],
            3,
            "check -b, that a broker listens there",
        ),
    ],
)
def test_errors(run, broker, closed_port, arguments, code, message):
    """An error is one message with advice, and has its exit code."""
    run("protocol", "produce", "-b", broker, "known", "x")
    result = run(
        "protocol", *({"BROKER": broker, "CLOSED": closed_port}.get(word, word) for word in arguments)
    )
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_a_topic_that_may_not_be_described(run):
    """A record for a topic that the user may not describe is sent, and the broker decides."""

    def hide(call, handle):
        response = handle()
        if call.message.topics is None:
            response.topics = []
        for row in response.topics:
            row.error_code, row.partitions = ErrorCode.TOPIC_AUTHORIZATION_FAILED, []
        return response

    with WireBroker("4.3") as broker:
        broker.faults.add(hide, api=ApiKey.METADATA, times=None)
        servers = broker.bootstrap_servers
        for kind, *command in (["fetch"], ["produce", "x"], ["produce", "x", "--partition", "7"]):
            result = run("protocol", kind, "-b", servers, "secret", *command)
            words = " ".join(result.stderr.split())
            assert (result.exit_code, result.stdout) == (3, ""), command
            assert "topic secret: TOPIC_AUTHORIZATION_FAILED (29)" in words, command
            assert words.endswith("; ask for this permission, or use other credentials"), command
            if kind == "fetch":
                named = [call.message for call in broker.calls(ApiKey.METADATA) if call.message.topics]
                assert [message.allow_auto_topic_creation for message in named] == [False]


def test_traces(run, broker, topic, tmp_path):
    """``protocol decode`` explains the frames of --trace: every response has its request."""
    path = tmp_path / "capture.jsonl"
    run("protocol", "produce", "-b", broker, topic, "hello", "--compression", "gzip", "--trace", path)
    run("protocol", "fetch", "-b", broker, topic, "--trace", path)
    result = run("protocol", "decode", path, "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = lines(result.stdout)
    assert [line["problems"] for line in found] == [[]] * len(found)
    frames = {(line["api"], line["kind"]) for line in found}
    assert frames >= {
        (api, kind) for api in ("Produce", "Fetch", "Metadata") for kind in ("request", "response")
    }
    values = [
        field["value"] for line in found for field in line["fields"] if field["path"].endswith("].value")
    ]
    assert values == ["hello", "hello"]


# --- login --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_login(run, monkeypatch, tmp_path, mechanism):
    """The password is read from the environment; a wrong one is refused; neither is printed or traced."""
    path = tmp_path / "capture.jsonl"
    with WireBroker("4.3", users={"ann": PASSWORD}) as broker:
        settings = ("security.protocol=sasl_plaintext", "sasl.username=ann", f"sasl.mechanism={mechanism}")
        options = [word for setting in settings for word in ("-X", setting)]
        ask = ("protocol", "api-versions", "-b", broker.bootstrap_servers, *options)
        monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", PASSWORD)
        good = run(*ask, "--trace", path)
        monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", "wrong horse")
        bad = run(*ask, "--trace", path)
    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert "check sasl.mechanism, sasl.username and sasl.password" in bad.stderr
    written = path.read_text() + good.output + bad.output
    assert not any(secret in written for secret in ("horse", b"horse".hex()))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subprocess.run(
        [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return cert, key


def test_tls(run, certificate):
    """ssl.ca.location is the trusted certificate; without it, an unknown certificate is refused."""
    cert, key = certificate
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    with WireBroker("4.3", tls=server) as broker:
        ask = ("protocol", "api-versions", "-b", broker.bootstrap_servers)
        assert run(*ask, "-X", "security.protocol=ssl", "-X", f"ssl.ca.location={cert}").exit_code == 0
        result = run(*ask, "-X", "security.protocol=ssl", "--timeout", 1)
        assert (result.exit_code, result.stdout) == (3, "")
        assert "certificate verify failed" in result.stderr


# --- signals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["produce", "-b", "BROKER", "t"],
        pytest.param(["produce", "-b", "SILENT", "t", "x"], marks=pytest.mark.release),
        pytest.param(["fetch", "-b", "SILENT", "t"], marks=pytest.mark.release),
        pytest.param(["api-versions", "-b", "SILENT"], marks=pytest.mark.release),
    ],
)
def test_ctrl_c(broker, closed_port, silent_server, arguments):
    """Ctrl-C ends each command at once, with exit code 130 and no traceback."""
    known = {"BROKER": broker, "CLOSED": closed_port, "SILENT": silent_server}
    for seconds in (1.0, 8.0):  # on a busy machine the imports take longer
        process = start("protocol", *(known.get(word, word) for word in arguments), "--timeout", "30")
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=5)
        if process.returncode == 130:
            break
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in errors


@pytest.mark.broker
def test_a_real_broker(run, kafka_broker: LocalBroker, kafka_topic: str, tmp_path):
    """A real Kafka lists its APIs, stores a record and returns it, and its frames are explained."""
    servers, path = kafka_broker.bootstrap_servers, tmp_path / "capture.jsonl"
    rows = {
        row["api"]: row for row in lines(run("protocol", "api-versions", "-b", servers, "-o", "json").stdout)
    }
    assert rows["DescribeCluster"]["picks"] is None
    assert rows["Fetch"]["picks"] == 12
    assert not any(name.startswith("API ") for name in rows)
    assert run("protocol", "produce", "-b", servers, kafka_topic, "x", "--trace", path).exit_code == 0
    found = lines(run("protocol", "fetch", "-b", servers, kafka_topic, "-o", "json", "--trace", path).stdout)
    assert [line["value"] for line in found] == ["x"]
    result = run("protocol", "decode", path, "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.broker
def test_transaction_markers_at_the_end(run, kafka_broker: LocalBroker, kafka_topic: str):
    """A partition that ends with a transaction marker is read to its end without waiting."""
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": kafka_topic, "log_level": 0})
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(kafka_topic, "x", partition=0)
        producer.flush(20)
        end(20)
    result = run("protocol", "fetch", "-b", servers, kafka_topic, "0", "-o", "json", "--timeout", "5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line["offset"] for line in lines(result.stdout)] == [0]


def test_options_are_those_of_the_other_commands(run, broker, topic, monkeypatch):
    """The broker is that of the environment, a range begins with --from, and -n and -o are as elsewhere."""
    monkeypatch.setenv("CE_KAFKA_BOOTSTRAP_SERVERS", broker)
    for value in "abc":
        [place] = lines(run("protocol", "produce", topic, value, "-o", "json").stdout)
    assert place["offset"] == 2
    [found] = lines(run("protocol", "fetch", topic, "--from", "-2", "-n", "1", "-o", "json").stdout)
    assert found["value"] == "b"
    assert run("protocol", "api-versions", "-o", "json").exit_code == 0
    monkeypatch.delenv("CE_KAFKA_BOOTSTRAP_SERVERS")
    assert "the broker is missing: pass -b host:port" in run("protocol", "fetch", topic).stderr
