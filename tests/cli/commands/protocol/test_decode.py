"""``protocol decode`` explains frames in digits, files and captures."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import click
import pytest

from cloudevents_kafka.cli.commands.protocol import _explained
from cloudevents_kafka.cli.commands.protocol._explained import Frame
from cloudevents_kafka.cli.terminal.text import columns
from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client import CapturedFrame, stream_trace
from cloudevents_kafka.protocol.explain import explain_request
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest
from cloudevents_kafka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.records import Codec, Record, encode_batch
from tests.cli.command_line import lines
from tests.support.cases import each
from tests.support.samples import one_in

VECTORS = Path(__file__).parents[3] / "protocol" / "vectors"
ASK = "0000000a00120000000000070000"
ASKED = """\
--hex  ApiVersions request, version 0, 14 bytes
     0  0000000a           size                        int32            10
     4  0012               header.request_api_key      int16            18  ApiVersions
     6  0000               header.request_api_version  int16            0
     8  00000007           header.correlation_id       int32            7
    12  0000               header.client_id            nullable_string  ""

"""


def vectors(file: str) -> list[dict]:
    return json.loads((VECTORS / file).read_text())["exchanges"]


def capture(pairs, broker="127.0.0.1:9092") -> str:
    """Return a capture as a client writes it: all requests, then all responses."""
    stream = io.StringIO()
    write = stream_trace(stream)
    for direction, name in (("sent", "request"), ("received", "response")):
        for pair in pairs:
            write(CapturedFrame(1.5, broker, direction, bytes.fromhex(pair[name])))
    return stream.getvalue()


def test_a_frame_as_a_table(run):
    """A frame is printed as a table: position, bytes, path, type, value and meaning."""
    result = run("protocol", "decode", "--hex", ASK)
    assert (result.exit_code, result.stdout, result.stderr) == (0, ASKED, "")


def test_a_frame_without_size(run):
    """A missing size field is detected, and --bare states it."""
    found = run("protocol", "decode", "--hex", ASK[8:]).stdout
    assert found.splitlines()[1].split() == [
        "0",
        "0012",
        "header.request_api_key",
        "int16",
        "18",
        "ApiVersions",
    ]
    assert run("protocol", "decode", "--bare", "--hex", ASK[8:]).stdout == found


def test_a_file_of_frames(run, tmp_path):
    """A file has one frame on each line; # starts a comment; spaces and 0x are ignored."""
    path = tmp_path / "frames.hex"
    path.write_text(f"# two\n\n{ASK}  # the first\n0x0000000a 0012 0000 00000008 0000\n")
    result = run("protocol", "decode", path)
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if "request," in line] == [
        f"{path}:{number}  ApiVersions request, version 0, 14 bytes" for number in (3, 4)
    ]
    assert run("protocol", "decode", stdin=path.read_text()).stdout == result.stdout.replace(
        str(path), "stdin"
    )


def test_json_lines(run):
    """With -o json a frame is one JSON object with a list of fields and their bytes."""
    [found] = lines(run("protocol", "decode", "-o", "json", "--hex", ASK).stdout)
    fields = found.pop("fields")
    assert found == {
        "where": "--hex",
        "kind": "request",
        "api": "ApiVersions",
        "key": 18,
        "version": 0,
        "size": 14,
        "problems": [],
    }
    assert "".join(field["hex"] for field in fields) == ASK
    assert fields[1] == {
        "at": 4,
        "end": 6,
        "hex": "0012",
        "path": "header.request_api_key",
        "type": "int16",
        "value": 18,
        "note": "ApiVersions",
    }


def test_records(run):
    """Records are printed with control characters escaped; compressed ones have their own positions."""
    batch = encode_batch([Record(b"\x1b[2J", b"\xff", [("h", None)])], Codec.GZIP)
    data = PartitionProduceData(index=0, records=batch)
    message = ProduceRequest(
        acks=1, timeout_ms=5, topic_data=[TopicProduceData(name="t\x9b", partition_data=[data])]
    )
    given = frames.encode_request(message, 3).hex()
    table = run("protocol", "decode", "--hex", given).stdout
    batch_path = "topic_data[0].partition_data[0].records[0]"
    assert f"-- decompressed bytes of {batch_path}.compressed, positions start at 0" in table
    assert '"\\x1b[2J"' in table
    assert '"t\\x9b"' in table
    assert "0xff" in table
    assert "\x1b" not in table
    fields = lines(run("protocol", "decode", "-o", "json", "--hex", given).stdout)[0]["fields"]
    by_path = {field["path"]: field for field in fields}
    value = by_path[f"{batch_path}.records[0].value"]
    assert (value["value"], value["within"]) == ({"base64": "/w=="}, f"{batch_path}.compressed")


@pytest.mark.parametrize("file", ["old-apis-4.3.1.json", "joingroup-v1.json", "record-batch-v2.json"])
def test_captures(run, file):
    """The responses of a capture are decoded in the version of their requests."""
    pairs = [pair for pair in vectors(file) if pair["response"] and pair["version"] != 99]
    result = run("protocol", "decode", "-o", "json", stdin=capture(pairs))
    assert (result.exit_code, result.stderr) == (0, "")
    found = lines(result.stdout)
    assert len(found) == 2 * len(pairs)
    for line, pair in zip(found, [*pairs, *pairs], strict=True):
        assert (line["key"], line["version"], line["problems"]) == (pair["api_key"], pair["version"], [])
        assert (line["broker"], line["time"]) == ("127.0.0.1:9092", 1.5)


def test_a_capture_as_a_table(run):
    """The heading of a frame from a capture has its line, broker, direction, time and name."""
    [pair, *_] = vectors("joingroup-v0.json")
    first = run("protocol", "decode", stdin=capture([pair])).stdout.splitlines()[0]
    size = len(pair["request"]) // 2
    assert first == (
        "stdin:1  127.0.0.1:9092  sent  1970-01-01T00:00:01.500000+00:00  "
        f"JoinGroup request, version 0, {size} bytes"
    )


def test_a_response(run):
    """The API of a response is an option, by name or key."""
    response = "00000007002300000000"
    for api in ("ApiVersions", "apiversions", "18"):
        result = run("protocol", "decode", "--response", "--api", api, "--version", 0, "--hex", response)
        assert result.exit_code == 0
        assert "UNSUPPORTED_VERSION" in result.stdout


def test_07(run):
    """Frames of Kafka 0.7 are explained, responses with the API of the option."""
    pair = vectors("0.7.2.json")[1]
    request, response = pair["request"], pair["response"]
    result = run("protocol", "decode", "--v07", "--hex", request)
    assert result.exit_code == 0
    assert result.stdout.startswith("--hex  FETCH request, ")
    result = run("protocol", "decode", "--v07", "--response", "--api", "FETCH", "--hex", response)
    assert result.exit_code == 0
    assert '"hello"' in result.stdout


# --- problems -----------------------------------------------------------------------


def test_a_cut_frame(run):
    """The fields of a truncated frame are printed, then its end; stderr has one line; exit code 1."""
    result = run("protocol", "decode", "--hex", "0000001200030001000000650005")
    assert result.exit_code == 1
    assert "header.correlation_id       int32   101" in result.stdout
    assert "     0  ! size at byte 0: the size must be 10, got 18" in result.stdout
    assert "    14  ! header.client_id at byte 14: the data must have at least 5 more bytes" in result.stdout
    assert result.stderr == (
        "cloudevents-kafka: --hex: Metadata request, version 1, 14 bytes: "
        "size at byte 0: the size must be 10, got 18 (and 1 more)\n"
    )


def test_a_partial_entry(run):
    """The size of a partial entry has its unit."""
    records = encode_batch([Record(b"k")])[:-3]
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=1, timeout_ms=5, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    result = run("protocol", "decode", "--hex", frames.encode_request(request, 3).hex())
    assert result.exit_code == 0
    assert re.search(rf"  partial +{len(records)} bytes  a partial entry", result.stdout)


def test_invalid_lines_are_reported_and_skipped(run):
    """A line without a frame is reported with its number, and the others are explained."""
    result = run("protocol", "decode", stdin=f'xyz\n{{"a": 1}}\n{ASK}\n')
    assert result.exit_code == 1
    assert result.stdout == ASKED.replace("--hex", "stdin:3")
    rule = "a line must be a frame in hexadecimal digits, or a JSON object of a capture"
    assert result.stderr.splitlines() == [
        f"cloudevents-kafka: stdin:1: {rule}, got 'xyz'",
        f"cloudevents-kafka: stdin:2 must be a line of a capture, got '{{\"a\": 1}}'; {rule}",
    ]


@pytest.mark.parametrize("given", [b"\xff\xfe", b"\x00", b"{" * 100_000, '{"time": 1e999, "sent": ""}', "é"])
def test_any_lines(run, given):
    """Any other line is an error with its number and exit code 1."""
    result = run("protocol", "decode", stdin=given)
    assert result.exit_code == 1
    assert result.stderr.startswith("cloudevents-kafka: stdin:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hex", ASK, "file"], "FILE and --hex exclude each other"),
        (["--hex", ASK, "--api", "Fetch"], "--api and --version need --response"),
        (["--hex", ASK, "--response"], "--response needs --api"),
        (["--hex", ASK, "--response", "--api", "Fetch"], "--response needs --api"),
        (["--hex", ASK, "--response", "--v07", "--api", "FETCH", "--version", "1"], "with --v07 only --api"),
        (
            ["--hex", ASK, "--response", "--api", "Nope", "--version", "1"],
            "--api must be the name of an API or its key",
        ),
        (["--hex", ""], "a frame is missing: pass frames"),
        (["/no/such/file"], "cannot read /no/such/file: No such file"),
    ],
)
def test_usage(run, arguments, message):
    """Bad usage is an error with exit code 2."""
    result = run("protocol", "decode", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())


def test_an_empty_request_round_trip(run):
    """A frame of the encoder is explained without problems."""
    data = frames.encode_request(ApiVersionsRequest(), 3, correlation_id=7, client_id="me")
    [found] = lines(run("protocol", "decode", "-o", "json", "--hex", data.hex()).stdout)
    assert (found["version"], found["problems"]) == (3, [])
    assert found["fields"][-1]["type"] == "tagged_fields"


PRODUCE = frames.encode_request(
    ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name="orders",
                partition_data=[
                    PartitionProduceData(
                        index=0,
                        records=encode_batch(
                            [
                                Record(
                                    b"k",
                                    "v\u00e4rld \u4e16\u754c ".encode() * 9,
                                    [("ce_id", b"1")],
                                    1_764_000_000_000,
                                )
                            ],
                            Codec.GZIP,
                        ),
                    )
                ],
            )
        ],
    ),
    9,
)


def test_a_frame_as_a_tree(run, monkeypatch):
    """A tree has a line for each structure and field, with its own name, indented below its parent."""
    monkeypatch.setenv("COLUMNS", "80")
    found = run("protocol", "decode", "-o", "tree", "--hex", PRODUCE.hex()).stdout.splitlines()
    names = [line[8:36].rstrip() for line in found]
    for parent, child in (
        ("topic_data[0]", "  partition_data[0]"),
        ("  partition_data[0]", "    index"),
        ("    records[0]", "      base_offset"),
        ("      records[0]", "        headers[0]"),
        ("        headers[0]", "          name"),
    ):
        assert names.index(parent) < names.index(child)
    assert "decompressed bytes, positions start at 0"[:28].rstrip() in names
    (line,) = (line for line in found if line[8:].startswith("acks"))
    assert line.split() == ["16", "acks", "int16", "-1", "all", "replicas", "in", "sync"]


@each("width", [40, 60, 80, 120, 200])
def test_a_tree_fits_the_width(width):
    """Each line of a tree is one line of the terminal, also of broken frames and of wide characters."""
    exchanges = [pair for file in ("0.8.2.2.json", "old-apis-4.3.1.json") for pair in vectors(file)]
    requests = [PRODUCE, PRODUCE[:-9], *(bytes.fromhex(pair["request"]) for pair in exchanges)]
    for data in requests:
        frame = Frame("a/long/path.jsonl:12", {}, explain_request(data))
        for line in _explained._tree(frame.explained, frame.where, width):
            assert columns(click.unstyle(line)) <= width, line


def test_kinds_have_their_colours():
    """Position, name, type and value of a field have four different styles."""
    _, line, *_ = _explained._tree(explain_request(bytes.fromhex(ASK)), "--hex", 80)
    assert re.findall(r"\x1b\[([0-9;]+)m(.*?)\x1b\[0m", line) == [
        ("2", "     0  "),
        ("36", "size                   "),
        ("34", "int32            "),
        ("32", "10"),
    ]


def test_garbage_is_counted(run):
    """Of an input without frames the first lines are reported, and the others counted."""
    result = run("protocol", "decode", stdin=b"\xfe garbage\n" * 5000 + ASK.encode() + b"\n")
    assert result.exit_code == 1
    assert result.stdout.startswith("stdin:5001  ApiVersions request")
    *messages, last = result.stderr.splitlines()
    assert len(messages) == 20
    assert last == "cloudevents-kafka: 4,980 more lines are bad; only the first 20 are shown here"


FORMS = [["-o", "table"], ["-o", "tree"], ["-o", "json"]]


@pytest.mark.parametrize("form", one_in(3, FORMS), ids=str)
def test_bad_frames_are_counted(run, form):
    """Of bad frames the first MiB is printed in each form; good frames between them are all printed."""
    bad, count = "0000000a00120000000000070001", 6000
    given = "\n".join([ASK, *[bad] * (count // 2), ASK, *[bad] * (count // 2), ASK])
    result = run("protocol", "decode", *form, stdin=given)
    assert result.exit_code == 1
    assert len(result.stdout) < 1_100_000
    printed = result.stdout.count("ApiVersions") - 6
    places = [f"stdin:{line}" for line in (1, count // 2 + 2, count + 3)]
    assert all(f'"{place}"' in result.stdout or f"{place}  " in result.stdout for place in places)
    *_, more, left_out = result.stderr.splitlines()
    assert more.endswith("5,980 more lines are bad; only the first 20 are shown here")
    found = re.fullmatch(
        r"cloudevents-kafka: ([0-9,]+) bad frames are not printed, because 1 MiB .* was printed before",
        left_out,
    )
    assert 0 < int(found[1].replace(",", "")) < count
    assert printed > 0


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("garbage", [b"\xfe" * 2_000_000, bytes(2_000_000)], ids=["ones", "zeros"])
def test_a_large_bad_frame_is_abridged(run, form, garbage):
    """A long field of a bad frame is cut; its position and end say how long it is."""
    result = run("protocol", "decode", *form, stdin=garbage.hex())
    assert result.exit_code == 1
    assert len(result.stdout) < 20_000


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_bad_frame_of_many_fields_is_abridged(run, form):
    """Of a bad frame the first and last 500 fields are printed, and the number of the others."""
    good = frames.encode_request(MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 5000), 0)
    result = run("protocol", "decode", *form, stdin=good.hex())
    assert result.stdout.count("name") == 5000
    result = run("protocol", "decode", *form, stdin=good[:-1].hex())
    assert 900 < result.stdout.count("name") < 1010
    assert "topics[1]" in result.stdout
    assert "topics[4999]" in result.stdout
    if form == ["-o", "json"]:
        [omitted] = [field for field in lines(result.stdout)[0]["fields"] if field["type"] == "omitted"]
        assert (omitted["value"], omitted["hex"]) == (4006, "")
    else:
        assert re.search("omitted +4,006 fields", result.stdout)


def test_seconds_of_a_capture_are_exact(run):
    """The time of a frame has all digits of the capture."""
    line = json.dumps({"time": 1_764_000_000.123456, "broker": "b:1", "sent": ASK})
    assert "2025-11-24T16:00:00.123456+00:00" in run("protocol", "decode", stdin=line.encode()).stdout
