"""`consume` prints one line for each record, a template, data of a registry, and chosen verdicts."""

from __future__ import annotations

import io
import json
import math
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fastavro
import pytest

from cloudevents_kafka import Event, Record, to_record
from tests.cli.command_line import lines, send, start
from tests.support.registries import slow_registry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "string"}]}
SCHEMAS = {
    1: {"schema": json.dumps(ORDER)},
    2: {"schema": "{}", "schemaType": "JSON"},
    3: {"schema": "syntax = 'proto3';", "schemaType": "PROTOBUF"},
    5: {"schema": json.dumps({"type": "map", "values": {"type": "array", "items": "double"}})},
}
PLACED = Event(id="1", source="/s", type="t", datacontenttype="application/avro", data=b"")
EVENT = to_record(Event(id="1", source="/s", type="placed", data={"n": 1}, partitionkey="c"), key=b"k\x1b")
LENIENT = Record(headers=[*EVENT.headers, ("ce_time", b"2026-11-21 12:00:00Z")], value=b"1")
BROKEN = Record(value=b"\x1b", headers=[*EVENT.headers[:3], ("ce_type", b"")])
OTHER = Record(value=b"x\ny")


def framed(number: int, rest: bytes) -> Record:
    return to_record(PLACED.replace(data=b"\0" + number.to_bytes(4, "big") + rest))


def avro(total: str) -> bytes:
    return datum(ORDER, {"total": total})


def datum(schema: dict[str, object], data: object) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), data)
    return written.getvalue()


@pytest.fixture(scope="module")
def schemas():
    """The address of a registry with some schemas."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            number = int(self.path.partition("?")[0].rpartition("/")[2])
            found = SCHEMAS.get(number)
            # Confluent's registry answers as for a wrong path if a number is not an int of Java.
            code = 40403 if number < 2**31 else 404
            body = json.dumps(found or {"error_code": code, "message": "no"}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def consume(run, mock_cluster, topic):
    """A function that sends records, and consumes their topic."""

    def call(*records, options=()):
        send(mock_cluster, topic, *records)
        return run("consume", "-b", mock_cluster, "-t", topic, "-p", "0", *options)

    return call


def test_lines(consume):
    """-o line is one line for each record, with the reason of those that are not events."""
    shown = consume(EVENT, BROKEN, OTHER, options=["-o", "line"]).stdout.splitlines()
    assert len(shown) == 3
    assert shown[0].endswith('  placed  /s  1  {"n":1}')
    assert "  broken-event  broken CloudEvent: type: must not be empty" in shown[1]
    assert "  not-an-event  not a CloudEvent: " in shown[2]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{offset:>3}|{type:<8}|{data}", ['  0|placed  |{"n":1}', "  1|        |"]),
        (r"{key}\t{ce_partitionkey}", ["k\\x1b\tc", "null\t"]),
        ("{partition} {verdict} {clauses} {mode}", ["0 event  binary", "0 not-an-event K-11 "]),
        ("{{{value}}}", ['{{"n":1}}', "{x\\x0ay}"]),
        ("{ce_none}{dataschema}{subject}", ["", ""]),
        ("{offset:05d} {partition:+} {offset:,} {offset!r:>2}", ["00000 +0 0  0", "00001 +0 1  1"]),
    ],
)
def test_templates(consume, template, expected):
    """A template has Python's format syntax; its values are escaped, and those that are not there empty."""
    result = consume(EVENT, OTHER, options=["--format", template])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{ofset}", "--format: 'ofset' is not a field; did you mean 'offset'?"),
        ("{zzz}", "it must be one of data, topic, partition, "),
        ("{type.__class__}", "'type.__class__' is not a field"),
        ("{type", "expected '}' before end of string"),
        ("{type:d}", "the format of 'type' must be for text, such as >20, got 'd'"),
        ("{}", "'' is not a field"),
        ("{offset:s}", "the format of 'offset' must be for numbers, such as 08d, got 's'"),
        ("{timestamp:%Y}", "must be for text, such as >20, got '%Y'"),
        ("{offset:c}", "the format of 'offset' must be for numbers or text, got 'c'"),
        ("{id:{type}}", "the format of 'id' must not have a field in it, got '{type}'"),
        ("{id:{type:{type}}}", "must not have a field in it"),
        ("{id:1001}", "a width or precision must be at most 1,000, got 1001 for 'id'"),
        ("{offset:.99999999999}", "must be at most 1,000, got 99999999999 for 'offset'"),
        ("{id:٣٣٣٣}", "must be at most 1,000"),
        (
            r"%o %k\n",
            "must have a field in braces, such as {offset}, got '%o %k\\\\n'; write '{offset} {key}'; the",
        ),
        ("{{offset}}", "the fields are data, topic, partition, "),
        ("", "the fields are data, topic, partition, "),
    ],
)
def test_wrong_templates(run, template, message):
    """A wrong template is refused before anything is read, with near names."""
    result = run("consume", "-b", "127.0.0.1:1", "-t", "x", "--format", template)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_verdicts(consume):
    """--verdict chooses records by their verdict; any-error is each that is not an event."""
    records = (EVENT, BROKEN, OTHER)

    def offsets(*options):
        return [line["offset"] for line in lines(consume(options=options).stdout)]

    consume(*records)
    assert offsets("--verdict", "event") == [0]
    assert offsets("--verdict", "broken-event") == [1]
    assert offsets("--verdict", "any-error") == [1, 2]
    assert offsets("--verdict", "not-an-event", "--verdict", "event") == [0, 2]


def test_the_end_says_what_lenient_reading_adds(consume):
    """The end says how many records that are refused --lenient would read; with it, nothing."""
    result = consume(EVENT, LENIENT, OTHER)
    assert result.stderr == "cloudevents-kafka: --lenient would read 1 of 2 records that are not events\n"
    assert consume(options=["--lenient"]).stderr == ""


def test_data_of_a_registry(consume, schemas):
    """Framed data is decoded next to the exact record; what cannot be has the reason."""
    records = [framed(1, avro("9.50")), framed(2, b'{"a":1}'), framed(3, b""), framed(4, b""), EVENT]
    option = ["--schema-registry", schemas]
    found = lines(consume(*records, options=option).stdout)
    assert [each.get("decoded") for each in found] == [{"total": "9.50"}, {"a": 1}, None, None, None]
    assert found[2]["decode_error"] == "schema 3 is of PROTOBUF"
    assert found[3]["decode_error"] == "the registry has no schema 4"
    assert "decode_error" not in found[4]
    text = consume(options=[*option, "-o", "text"]).stdout
    assert '  data             {"total":"9.50"}\n' in text
    assert "not decoded: the registry has no schema 4" in text
    assert '{"total":"9.50"}' in consume(options=[*option, "--format", "{data}"]).stdout


def test_a_number_that_is_not_the_id_of_a_schema(consume, schemas):
    """Other bytes, such as Avro whose first value is a null, may begin like data with an id."""
    records = [framed(2**31, b"x"), framed(2**32 - 1, b""), framed(2**31 - 1, b""), framed(2, b"[1]")]
    found = lines(consume(*records, options=["--schema-registry", schemas]).stdout)
    assert [each.get("decode_error") for each in found] == [
        "the registry has no schema 2147483648",
        "the registry has no schema 4294967295",
        "the registry has no schema 2147483647",
        None,
    ]


def test_data_too_short_for_the_id_of_a_schema(consume, schemas):
    """A zero may be all the data, such as the Avro of a null in a union."""
    records = [to_record(PLACED.replace(data=data)) for data in (b"\0", b"\0\0\0\1", b"\1" + bytes(15), b"")]
    found = lines(consume(*records, options=["--schema-registry", schemas]).stdout)
    assert [each.keys() & {"decoded", "decode_error"} for each in found] == [set()] * 4


def test_numbers_that_json_does_not_have(consume, schemas):
    """NaN and the infinities have the names that they have in Avro's JSON, and are not null."""
    numbers = datum(json.loads(SCHEMAS[5]["schema"]), {"v": [math.nan, math.inf, -math.inf, 1.5]})
    [found] = lines(consume(framed(5, numbers), options=["--schema-registry", schemas]).stdout)
    assert found["decoded"] == {"v": ["NaN", "Infinity", "-Infinity", 1.5]}


def test_decoded_data_is_not_an_edit(consume, run, mock_cluster, topic, schemas):
    """`produce` sends the exact record of a line with decoded data."""
    written = consume(framed(1, avro("9.50")), options=["--schema-registry", schemas]).stdout
    assert run("produce", "-b", mock_cluster, "-t", f"{topic}-copy", stdin=written).exit_code == 0
    [copy] = lines(run("consume", "-b", mock_cluster, "-t", f"{topic}-copy").stdout)
    assert copy["value"] == json.loads(written)["value"]


def test_a_registry_that_does_not_answer(consume):
    """A registry that does not answer ends the command, with its address without a login."""
    result = consume(framed(1, b"x"), options=["--schema-registry", "http://me:secret@127.0.0.1:1"])
    assert result.exit_code == 3
    assert "registry http://********@127.0.0.1:1 does not answer: " in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "byte by byte"])
def test_a_registry_that_holds_its_answer(consume, *, drips):
    """A registry that accepts and does not answer is away, by the time-out of the settings."""
    settings = ["-X", "schema.registry.timeout=0.1", "-X", "schema.registry.max.retries=0"]
    with slow_registry(drips=drips) as registry:
        result = consume(framed(1, b"x"), options=["--schema-registry", registry.url, *settings])
    assert (result.exit_code, registry.asked.is_set()) == (3, True)
    assert f"registry {registry.url} does not answer: " in result.stderr


def test_wrong_settings_of_a_registry(consume):
    """A setting that must be a number is named, with its value."""
    options = ["--schema-registry", "http://127.0.0.1:1", "-X", "schema.registry.timeout=soon"]
    result = consume(EVENT, options=options)
    assert result.exit_code == 2
    assert "schema.registry.timeout must be a number from 0.001 to 86400, got 'soon'" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.release)])
def test_a_signal_ends_the_waiting_for_a_registry(consume, mock_cluster, topic, number):
    """Ctrl-C and SIGTERM end a command that waits for a registry, at once."""
    consume(framed(1, b"x"))
    with slow_registry() as registry:
        where = ("-b", mock_cluster, "-t", topic, "-p", "0", "--schema-registry", registry.url)
        process = start("consume", *where, "-X", "schema.registry.timeout=600")
        assert registry.asked.wait(60)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (128 + number, b""), errors
