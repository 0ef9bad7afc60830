"""``protocol grammar`` prints any message in any of its versions."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.explain.grammar import text
from cloudevents_kafka.protocol.messages import APIS


def test_one_version(run):
    """A message in one version has one grammar."""
    result = run("protocol", "grammar", "metadatarequest", 0)
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == "# MetadataRequest, version 0\nMetadataRequest => [TopicName]\n  TopicName => string\n"
    )


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_all_versions(run, api):
    """Without a version all versions are printed, with equal ones grouped."""
    result = run("protocol", "grammar", api.name)
    assert result.exit_code == 0
    heads = [line for line in result.stdout.splitlines() if line.startswith("# ")]
    for message in (api.request, api.response):
        covered = []
        for head in heads:
            name, _, versions = head.removeprefix("# ").partition(", version")
            if name == message.__name__:
                first, _, last = versions.removeprefix("s").strip().partition("-")
                covered += range(int(first), int(last or first) + 1)
        assert covered == list(range(api.versions.first, api.versions.last + 1))
        for version in covered:
            assert text(message, version) in result.stdout


def test_some_versions(run):
    """Versions are numbers and ranges."""
    result = run("protocol", "grammar", "MetadataRequest", "1-2", 4)
    heads = [line for line in result.stdout.splitlines() if line.startswith("# ")]
    assert heads == ["# MetadataRequest, versions 1-2", "# MetadataRequest, version 4"]


def test_names(run):
    """Without a name all names are listed with their versions; each has a grammar."""
    result = run("protocol", "grammar")
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert len(names) == 2 * len(APIS) + 3
    for name in names:
        assert run("protocol", "grammar", name).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["MetadataReqest"],
            "no message has the name 'MetadataReqest'; did you mean 'MetadataRequest'",
        ),
        (["Metadata", "99"], "MetadataRequest has versions 0-13, got 99"),
        (["Metadata", "0-99"], "MetadataRequest has versions 0-13, got 0-99"),
        (["Metadata", "x"], "a version must be a number, such as 3, or a range, such as 0-2, got 'x'"),
        (["Metadata", "3-1"], "must not be above the last version, got 3-1"),
        (["Metadata", "1" * 5000], "a version must be a number"),
    ],
)
def test_usage(run, arguments, message):
    """An unknown name or version is an error with the known ones and exit code 2."""
    result = run("protocol", "grammar", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
