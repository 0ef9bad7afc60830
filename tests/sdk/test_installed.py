"""The functions of version 1 stand on whichever version of the SDK is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from cloudevents_kafka import sdk
from cloudevents_kafka.sdk import _installed

ROOT = Path(__file__).parents[2]
CODE = """
import json
from cloudevents.http import CloudEvent
from cloudevents.kafka import from_binary, to_structured
from cloudevents_kafka.errors import NotAnEvent
from cloudevents_kafka.sdk import v1
event = CloudEvent({"source": "/", "type": "t", "datacontenttype": "application/json"}, {"a": 1})
found = [from_binary(v1.to_binary(event)) == v1.from_structured(to_structured(event)) == event]
try:
    v1.from_binary(v1.KafkaMessage({"ce_id": b"1"}, None, b""))
except NotAnEvent as error:
    found.append([*error.errors])
try:
    from cloudevents_kafka.sdk import from_kafka
except ImportError as error:
    found.append(str(error))
print(json.dumps(found))
"""


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    """The modules of version 1 where version 1 has them, from the copy that version 2 has."""
    spec = find_spec("cloudevents.v1")
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        pytest.skip("version 1 is installed")
    source = Path(next(iter(spec.submodule_search_locations or ())))
    shutil.copytree(source, tmp_path / "cloudevents")
    (tmp_path / "cloudevents" / "__init__.py").touch()
    for file in (tmp_path / "cloudevents").rglob("*.py"):
        text = file.read_text("utf-8").replace("cloudevents.v1", "cloudevents")
        file.write_text(text, "utf-8")
    return tmp_path


def test_version_1_has_no_version_2(version_1: Path) -> None:
    """`v1` reads and writes, its errors are the SDK's, and a function of version 2 says what it needs."""
    path = os.pathsep.join((str(version_1), str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=os.environ | {"PYTHONPATH": path}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    equal, missing, needs = json.loads(done.stdout)
    assert equal
    assert missing == ["specversion", "source", "type"]
    assert needs == (
        f"cloudevents_kafka.sdk.from_kafka needs cloudevents>=2, got {_installed.VERSION}; "
        "install it, or use cloudevents_kafka.sdk.v1, which works with version 1"
    )


def test_another_name_is_no_name() -> None:
    """A name that the SDK does not have is one that the module does not have."""
    with pytest.raises(AttributeError, match=r"module 'cloudevents_kafka\.sdk' has no attribute 'from_http'"):
        sdk.from_http  # noqa: B018
