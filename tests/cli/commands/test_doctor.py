"""``doctor`` prints what is here, what is missing, and what would work; it starts and fetches nothing."""

from __future__ import annotations

import http.server
import re
import socket
import threading
from contextlib import contextmanager

import pytest

from cloudevents_kafka.cli.commands import doctor
from cloudevents_kafka.cli.commands.doctor import COMMAND_NEEDS
from cloudevents_kafka.cli.needs import EXTRAS, Finding
from cloudevents_kafka.jvm import CACHE_VARIABLE, _java
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE
from tests.support.registries import slow_registry
from tests.support.wire_broker import WireBroker


@contextmanager
def registry(status: int = 200, body: bytes = b'["orders-value", "shops-value"]'):
    """Yield the URL of a server that answers each request alike, and the headers of the requests."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, self.headers["Authorization"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _loopback_without_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def without_java(monkeypatch, tmp_path):
    monkeypatch.setattr(_java, "JAVA_HOMES", ())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(MIRROR_VARIABLE, (tmp_path / "no repository").as_uri())


def rows(output: str) -> dict[str, str]:
    """Return the lines of the tables: the first column, and the rest."""
    pairs = (re.split(r"  +", line.strip(), maxsplit=1) for line in output.splitlines() if line[:2] == "  ")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def test_all_commands_are_listed(run):
    """Each command and each extra has a line; the versions are there."""
    result = run("doctor")
    assert result.exit_code == 0
    lines = rows(result.stdout)
    assert lines.keys() >= COMMAND_NEEDS.keys()
    assert lines.keys() >= {f"extra {name}" for name in EXTRAS if name != "cli"}
    assert lines["consume"] == "yes"
    assert re.match(r"\d+\.\d+", lines["librdkafka"])


@pytest.mark.usefixtures("without_java", "empty_cache")
def test_what_is_missing_has_what_to_do(run, tmp_path):
    """Without Java and jars, the commands that need them would not work; nothing is fetched."""
    result = run("doctor")
    assert result.exit_code == 0
    lines = rows(result.stdout)
    assert lines["Java"] == "missing, see below"
    assert lines["Kafka"] == "not in the cache, see below"
    assert lines["produce"] == "yes"
    assert "- Java: no suitable Java" in result.stdout
    assert "apt install openjdk-17-jre-headless" in result.stdout
    assert "or: cloudevents-kafka doctor --fetch" in result.stdout
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("without_java")
def test_a_named_command_decides_the_exit_code(run):
    """The exit code is 2 if a named command would not work, and 0 if it would."""
    broken = run("doctor", "broker")
    assert (broken.exit_code, rows(broken.stdout)["broker"]) == (2, "no: Java")
    assert "extra spark" not in broken.stdout
    assert run("doctor", "consume").exit_code == 0
    wrong = run("doctor", "brokers")
    assert wrong.exit_code == 2
    assert "COMMAND must be one of consume, produce" in wrong.stderr


@pytest.mark.usefixtures("empty_cache")
def test_jars_are_fetched_if_asked_for(run):
    """Jars that a command would fetch are not a reason against it; with --fetch their failure is."""
    later = run("doctor", "broker")
    if rows(later.stdout)["Java"] != "missing, see below":
        assert later.exit_code == 0
        assert rows(later.stdout)["broker"] == "yes, fetches jars first: Kafka"
    fetched = run("doctor", "broker", "--fetch")
    assert fetched.exit_code == 2
    assert "- the jars of Kafka 4.3.1: cannot fetch org.apache.kafka" in fetched.stdout


@pytest.mark.usefixtures("without_java")
@pytest.mark.parametrize(
    ("commands", "fetched"),
    [
        (("broker", "pipeline"), {"Kafka", "connector"}),
        (("pipeline --to delta",), {"connector", "Delta"}),
        (("consume",), set()),
        ((), {"Kafka", "connector", "Delta", "Iceberg"}),
    ],
)
def test_only_what_the_named_commands_need_is_fetched(run, monkeypatch, commands, fetched):
    """What an option of a command needs is fetched if the command is named with it, or none is named."""
    asked = set()

    def check(name):
        def look(fetch):
            asked.update([name] * fetch)
            return Finding("here")

        return look

    jars = ("Kafka", "connector", "Delta", "Iceberg")
    monkeypatch.setattr(doctor, "PARTS", doctor.PARTS | {name: check(name) for name in jars})
    result = run("doctor", *commands, "--fetch")
    assert asked == fetched
    if commands == ("broker", "pipeline"):
        assert "pipeline --to iceberg" in result.stdout


def test_a_missing_extra_of_an_option_is_shown(run, monkeypatch):
    """A command would work without what only its options need; they have lines of their own."""
    here = {name: lambda _: Finding("here") for name in doctor.PARTS}
    missing = {"extra metrics": lambda _: Finding(problem="prometheus_client")}
    monkeypatch.setattr(doctor, "PARTS", here | missing)
    result = run("doctor", "pipeline")
    assert (result.exit_code, rows(result.stdout)["pipeline --metrics-port"]) == (0, "no: extra metrics")
    assert run("doctor", "pipeline --metrics-port").exit_code == 2
    wrong = run("doctor", "pipeline --to")
    assert "COMMAND must be one of pipeline, pipeline --once, pipeline --to delta, " in wrong.stderr


def test_a_cache_that_cannot_be_written(run, monkeypatch, tmp_path):
    """Without jars and a cache folder for them, a command would not work, and the reason says what to set."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    result = run("doctor", "broker")
    assert (result.exit_code, rows(result.stdout)["Kafka"]) == (2, "missing, see below")
    assert "the cache folder must be writable for this user" in result.stdout
    assert f"{tmp_path / 'file'} is a file); set {CACHE_VARIABLE} to another folder" in result.stdout


def test_servers_are_asked(run):
    """A broker and a registry that answer are described; a login in the URL is used and not shown."""
    with WireBroker("4.3") as broker, registry() as (address, requests):
        result = run("doctor", "-b", broker.bootstrap_servers, "--registry", f"http://me:s%40cret@{address}/")
        assert result.exit_code == 0
        lines = rows(result.stdout)
    assert "answers: 1 broker, " in result.stdout
    assert "answers: 2 subjects" in lines["registry"]
    assert "cret" not in result.stdout
    assert requests == [("/subjects", "Basic bWU6c0BjcmV0")]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b"", "answers 401 Unauthorized; check the user and the password"),
        (404, b"", "answers 404 Not Found; check --registry"),
        (200, b"<html>", "does not answer as a schema registry; check --registry"),
        (200, b"{}", "does not answer as a schema registry; check --registry"),
    ],
)
def test_other_answers(run, status, body, expected):
    """An answer that is not a registry's is reported; the exit code is 3."""
    with registry(status, body) as (address, _):
        result = run("doctor", "consume", "--registry", f"http://{address}")
    assert (result.exit_code, rows(result.stdout)["registry"]) == (3, "missing, see below")
    assert f"{address} {expected}" in result.stdout


def test_servers_that_do_not_answer(run):
    """Both are reported, each with what to check; the exit code is 3."""
    result = run(
        "doctor", "-b", "127.0.0.1:1", "--registry", "http://127.0.0.1:1", "--timeout", "1", "consume"
    )
    assert result.exit_code == 3
    assert "- broker 127.0.0.1:1 refuses connections: " in result.stdout
    assert re.search(r"^  broker +does not answer, see below$", result.stdout, re.MULTILINE)
    assert rows(result.stdout)["consume"] == "no: broker"
    assert "- registry http://127.0.0.1:1 does not answer: " in result.stdout


@pytest.mark.parametrize(
    "url", ["localhost:8081", "ftp://x", "http://", "http://[", "http://a b", "http://a:x"]
)
def test_a_wrong_url(run, url):
    """A URL that cannot be one of a registry is a usage error."""
    result = run("doctor", "--registry", url)
    assert result.exit_code == 2
    assert "--registry must be a URL such as http://localhost:8081" in result.stderr


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 \x1b[2J\x1b]0;owned\x07 \xc2\x9b31m\r\n\r\n",
        b"HTTP/1.1 401 \x1b[31mroot\r\n\r\n",
        b"\x1b[2J no http\r\n",
        b"HTTP/1.1 302 x\r\nLocation: http://\x1b[2J\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n\x1b[2J",
    ],
)
def test_what_a_server_sends_is_escaped(run, answer):
    """No control character of an answer comes to the terminal, wherever it stands."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        result = run("doctor", "consume", "--registry", f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    assert result.exit_code == 3
    assert not [sign for sign in result.output if sign != "\n" and not sign.isprintable()]


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "byte by byte"])
def test_a_registry_that_does_not_answer_to_the_end(run, *, drips):
    """It is reported as one that does not answer, after a limited time."""
    with slow_registry(drips=drips) as server:
        result = run("doctor", "consume", "--registry", server.url, "--timeout", "0.1")
    assert (result.exit_code, server.asked.is_set()) == (3, True)
    assert f"registry {server.url} does not answer: " in result.stdout


def test_what_needs_no_broker_works_without_it(run):
    """A silent broker is the reason against the commands, or parts of them, that connect to it."""
    names = ("consume", "decode", "produce", "spark-zip", "protocol", "report")
    result = run("doctor", "-b", "127.0.0.1:1", *names)
    found = rows(result.stdout)
    assert result.exit_code == 3
    assert {name: found[name] for name in names} == {
        "consume": "no: broker",
        "produce": "no: broker",
        "decode": "yes",
        "spark-zip": "yes",
        "protocol": "only decode and grammar, without the broker",
        "report": "only --out, --table and --summary-json, without the broker",
    }
    assert found["protocol produce --compression"] == "no: broker"
    assert not found["report --out"].startswith("no: broker")
