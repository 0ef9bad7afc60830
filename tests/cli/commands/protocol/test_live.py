"""``protocol api-versions``, ``fetch`` and ``produce``: on brokers played in this process."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time

import pytest
from cli.calling import lines, start
from confluent_kafka import Producer

from cloudevents_kafka.cli.commands.protocol.produce import CODECS
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.wire_broker import WireBroker

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
def mute():
    """Something that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


# --- api-versions ------------------------------------------------------------------------


def test_api_versions(run, broker):
    """Each API has the broker's versions, those declared, the client's, and what it picks of them."""
    done = run("protocol", "api-versions", broker)
    assert (done.exit_code, done.stderr) == (0, "")
    head, first, *_ = (line.split() for line in done.stdout.splitlines())
    assert head == ["key", "api", "broker", "declared", "client", "picks"]
    assert first == ["0", "Produce", "0-13", "0-13", "0-12", "12"]
    rows = {row["key"]: row for row in lines(run("protocol", "api-versions", broker, "--json").stdout)}
    assert rows[0] == {
        "key": 0,
        "api": "Produce",
        "broker": "0-13",
        "declared": "0-13",
        "client": "0-12",
        "picks": 12,
    }
    assert {row["api"] for row in rows.values()} >= {api.name for api in APIS.values()}


def test_api_versions_of_an_old_broker(run, old_broker):
    """Of a broker that cannot be asked this is said, and what such brokers take is shown."""
    done = run("protocol", "api-versions", old_broker)
    assert done.exit_code == 0
    assert f"broker {old_broker} does not list its API versions" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["0", "Produce", "0", "0-13", "0-12", "0"] in rows
    assert ["18", "ApiVersions", "-", "0-4", "0-3", "-"] in rows


# --- produce and fetch -------------------------------------------------------------------


def test_codecs():
    """The command knows the codecs of the client."""
    assert tuple(codec.name.lower() for codec in Codec) == CODECS


@pytest.mark.parametrize("codec", CODECS)
def test_there_and_back(run, broker, topic, codec):
    """What produce sends, fetch gives: key, headers, value."""
    sent = run(
        *("protocol", "produce", broker, topic, "--key", "k", "--header", "a=1", "--header", "n"),
        *("--compression", codec, "hello"),
    )
    assert (sent.exit_code, sent.stdout, sent.stderr) == (0, f"{topic}[0]@0\n", "")
    done = run("protocol", "fetch", broker, topic, "--json")
    [found] = lines(done.stdout)
    assert (done.exit_code, found.pop("timestamp") > 0) == (0, True)
    assert found == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "key": "k",
        "headers": [["a", "1"], ["n", None]],
        "value": "hello",
    }
    shown = run("protocol", "fetch", broker, topic).stdout.splitlines()
    assert shown[0].startswith(f"{topic}[0]@0  ")
    assert [line.split() for line in shown[1:4]] == [
        ["header", "a", "=", "1"],
        ["header", "n", "is", "null"],
        ["value", "hello"],
    ]


def test_old_brokers(run, old_broker, topic):
    """A broker of 0.8.2 takes and gives as well; headers, which it has none of, are refused."""
    assert run("protocol", "produce", old_broker, topic, "x", "--json").stdout.endswith('"offset":0}\n')
    assert lines(run("protocol", "fetch", old_broker, topic, "--json").stdout)[0]["value"] == "x"
    refused = run("protocol", "produce", old_broker, topic, "x", "--header", "a=1")
    assert refused.exit_code == 3
    assert "brokers before 0.11 carry no headers" in refused.stderr


def test_values(run, broker, topic):
    """A value is text, the bytes of stdin, or null."""
    assert run("protocol", "produce", broker, topic, given=b"\xff\n").exit_code == 0
    assert run("protocol", "produce", broker, topic, "-", given=b"").exit_code == 0
    assert run("protocol", "produce", broker, topic, "--null").exit_code == 0
    found = lines(run("protocol", "fetch", broker, topic, "--json").stdout)
    assert [line["value"] for line in found] == [{"base64": "/wo="}, "", None]


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ([], [0, 1, 2, 3]),
        (["--count", "2"], [0, 1]),
        (["--offset", "2"], [2, 3]),
        (["--offset", "99"], []),
        (["--offset", "-1"], [3]),
        (["--offset", "latest"], []),
        (["--offset", "@0"], [0, 1, 2, 3]),
        (["--offset", "@2100-01-01T00:00:00Z"], []),
    ],
)
def test_positions(run, broker, topic, arguments, offsets):
    """Reading begins where --offset says, and ends at the end, or after --count."""
    for number in range(4):
        run("protocol", "produce", broker, topic, str(number))
    done = run("protocol", "fetch", broker, topic, "0", "--json", *arguments)
    assert (done.exit_code, [line["offset"] for line in lines(done.stdout)]) == (0, offsets)


def test_all_partitions(run, topic):
    """Without a partition all are read."""
    with WireBroker("4.3") as broker:
        broker.create_topic(topic, 3)
        servers = broker.bootstrap_servers
        for partition in (0, 2, 2):
            run("protocol", "produce", servers, topic, "x", "--partition", partition)
        found = lines(run("protocol", "fetch", servers, topic, "--json").stdout)
        assert sorted((line["partition"], line["offset"]) for line in found) == [(0, 0), (2, 0), (2, 1)]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["fetch", "BROKER", "nothing"], 2, "has no topic 'nothing'; check TOPIC"),
        (["fetch", "BROKER", "known", "7"], 2, "topic 'known' has no partition 7; it has 0"),
        (["fetch", "BROKER", "known", "--offset", "stored"], 2, "needs a group"),
        (["fetch", "BROKER", "known", "--offset", "x"], 2, "a position must be"),
        (["produce", "BROKER", "known", "x", "--null"], 2, "--null and VALUE exclude each other"),
        (
            ["produce", "BROKER", "known", "x", "--partition", "7", "--timeout", "0.3"],
            2,
            "topic 'known' has no partition 7; it has 0",
        ),
        (["produce", "BROKER", "known", "x", "--mechanism", "PLAIN"], 2, "--mechanism needs --user"),
        (["produce", "BROKER", "known", "x", "--user", "ann"], 2, "set CE_KAFKA_SASL_PASSWORD"),
        (["produce", "BROKER", "known", "x", "--cafile", "/nowhere"], 2, "--cafile: cannot read"),
        (["produce", "BROKER", "known", "x", "--trace", "/no/where"], 2, "--trace: cannot write /no/where"),
        (["api-versions", "a:b"], 2, "BROKER: 'a:b' is no address; write host:port"),
        (["api-versions", "CLOSED", "--timeout", "0.3"], 3, "check BROKER, that a broker listens there"),
        (["fetch", "CLOSED", "t", "--timeout", "0.3"], 3, "check BROKER, that a broker listens there"),
        (["produce", "CLOSED", "t", "x", "--timeout", "0.3"], 3, "check BROKER, that a broker listens there"),
    ],
)
def test_trouble(run, broker, closed_port, arguments, code, told):
    """Trouble is said in one message with what to do, and has its exit code."""
    run("protocol", "produce", broker, "known", "x")
    done = run("protocol", *({"BROKER": broker, "CLOSED": closed_port}.get(word, word) for word in arguments))
    assert (done.exit_code, done.stdout) == (code, "")
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_traces(run, broker, topic, tmp_path):
    """What --trace writes, protocol decode explains to the last byte: all answers have their requests."""
    path = tmp_path / "capture.jsonl"
    run("protocol", "produce", broker, topic, "hello", "--compression", "gzip", "--trace", path)
    run("protocol", "fetch", broker, topic, "--trace", path)
    done = run("protocol", "decode", path, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = lines(done.stdout)
    assert [line["problems"] for line in found] == [[]] * len(found)
    told = {(line["api"], line["kind"]) for line in found}
    assert told >= {
        (api, kind) for api in ("Produce", "Fetch", "Metadata") for kind in ("request", "response")
    }
    values = [
        field["value"] for line in found for field in line["fields"] if field["path"].endswith("].value")
    ]
    assert values == ["hello", "hello"]


# --- logging in --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logging_in(run, monkeypatch, tmp_path, mechanism):
    """The password comes from the environment; a wrong one is refused; neither is shown or traced."""
    path = tmp_path / "capture.jsonl"
    with WireBroker("4.3", users={"ann": PASSWORD}) as broker:
        ask = (
            "protocol",
            "api-versions",
            broker.bootstrap_servers,
            "--user",
            "ann",
            "--mechanism",
            mechanism,
        )
        monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", PASSWORD)
        good = run(*ask, "--trace", path)
        monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", "wrong horse")
        bad = run(*ask, "--trace", path)
    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert "check --user, --mechanism and the password" in bad.stderr
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
    """--cafile says whom to trust; without it, a broker that nobody known has signed is refused."""
    cert, key = certificate
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    with WireBroker("4.3", tls=server) as broker:
        ask = ("protocol", "api-versions", broker.bootstrap_servers)
        assert run(*ask, "--cafile", cert).exit_code == 0
        done = run(*ask, "--tls", "--timeout", 1)
        assert (done.exit_code, done.stdout) == (3, "")
        assert "certificate verify failed" in done.stderr


# --- ends --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["produce", "BROKER", "t"],
        ["produce", "CLOSED", "t", "x"],
        ["fetch", "CLOSED", "t"],
        ["api-versions", "MUTE"],
    ],
)
def test_ctrl_c(broker, closed_port, mute, arguments):
    """Ctrl-C ends each of them at once, with exit code 130 and no traceback."""
    known = {"BROKER": broker, "CLOSED": closed_port, "MUTE": mute}
    process = start("protocol", *(known.get(word, word) for word in arguments), "--timeout", "30")
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=5)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in said


@pytest.mark.broker
def test_a_real_broker(run, kafka_broker: LocalBroker, kafka_topic: str, tmp_path):
    """A real Kafka lists APIs that only have a name here, takes a record, gives it, and is traced."""
    servers, path = kafka_broker.bootstrap_servers, tmp_path / "capture.jsonl"
    rows = {row["api"]: row for row in lines(run("protocol", "api-versions", servers, "--json").stdout)}
    assert rows["DescribeCluster"]["picks"] is None
    assert rows["Fetch"]["picks"] == 12
    assert not any(name.startswith("API ") for name in rows)
    assert run("protocol", "produce", servers, kafka_topic, "x", "--trace", path).exit_code == 0
    found = lines(run("protocol", "fetch", servers, kafka_topic, "--json", "--trace", path).stdout)
    assert [line["value"] for line in found] == ["x"]
    done = run("protocol", "decode", path, "--json")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.broker
def test_marks_at_the_end(run, kafka_broker: LocalBroker, kafka_topic: str):
    """A partition that ends with the mark of a transaction is read to its end, and not waited for."""
    servers = kafka_broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": kafka_topic, "log_level": 0})
    producer.init_transactions(20)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(kafka_topic, "x", partition=0)
        producer.flush(20)
        end(20)
    done = run("protocol", "fetch", servers, kafka_topic, "0", "--json", "--timeout", "5")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [line["offset"] for line in lines(done.stdout)] == [0]
