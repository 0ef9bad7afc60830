"""Run the official SDK's own tests of its Kafka functions against the functions of the same names here.

    python -m tests.support.sdk_own_tests CHECKOUT

CHECKOUT is a clone of the SDK's repository, since neither its wheel nor its sdist has tests. The tests are
copied to a temporary folder, where they import from `cloudevents_kafka.sdk`. ``tests/sdk/own_tests.toml`` has
what is corrected in them and which of them fail, with judgements; print both. Exit with status 1 if other
tests fail, or if one of these passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from cloudevents_kafka.primitives.plural import pluralize

ROOT = Path(__file__).parents[2]
LISTED: dict[str, Any] = tomllib.loads((ROOT / "tests" / "sdk" / "own_tests.toml").read_text("utf-8"))
FILES = {
    "tests/test_core/test_bindings/test_kafka.py": (
        "cloudevents.core.bindings.kafka",
        "cloudevents_kafka.sdk",
    ),
    "tests/test_v1_compat/test_kafka_conversions.py": (
        "cloudevents.v1.kafka.conversion",
        "cloudevents_kafka.sdk.v1",
    ),
}


def corrected(file: str, text: str) -> str:
    """Return the tests of a file with the module of this library, and with corrected fixtures."""
    theirs, ours = FILES[file]
    text, count = re.subn(rf"from {re.escape(theirs)} import", f"from {ours} import", text)
    if count != 1:
        raise SystemExit(f"{file} must import once from {theirs}, got {count} imports")
    for one in LISTED["correction"]:
        if one["file"] == file:
            text, count = re.subn(one["pattern"], one["replacement"], text)
            if not count:
                raise SystemExit(
                    f"{file} must have what is corrected, {one['pattern']}; remove the correction"
                )
    return text


def outcomes(checkout: Path, folder: Path) -> dict[str, bool]:
    """Return whether each test passes, by its name."""
    for file in FILES:
        text = (checkout / file).read_text("utf-8")
        (folder / Path(file).name).write_text(corrected(file, text), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    results = folder / "results.xml"
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={folder}", f"--junitxml={results}"]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    cases = ET.parse(results).getroot().iter("testcase")
    return {
        f"{case.get('classname')}::{case.get('name')}": case.find("failure") is None
        and case.find("error") is None
        for case in cases
    }


def report(found: dict[str, bool]) -> tuple[str, bool]:
    """Return what the tests show, and whether it is what the list says."""
    listed = {one["test"]: one for one in LISTED["difference"]}
    failed = {name for name, passed in found.items() if not passed}
    counts = (pluralize(len(found), "test"), len(found) - len(failed), len(failed))
    lines = ["{} of the SDK: {} passed, {} failed".format(*counts)]
    lines += [f"- corrected: {one['judged']}" for one in LISTED["correction"]]
    for name in sorted(failed & listed.keys()):
        one = listed[name]
        lines.append(f"- {name}: {one['sdk']} -> {one['here']}. {one['judged']}")
    lines += [f"- {name}: FAILS, and is not listed" for name in sorted(failed - listed.keys())]
    lines += [f"- {name}: is listed, and does not fail" for name in sorted(listed.keys() - failed)]
    return "\n".join(lines), bool(found) and failed == listed.keys()


def main(checkout: str) -> int:
    """Print the report and return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        text, as_listed = report(outcomes(Path(checkout).resolve(), Path(folder)))
    sys.stdout.write(f"{text}\n")
    return 0 if as_listed else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.support.sdk_own_tests CHECKOUT")
    sys.exit(main(sys.argv[1]))
