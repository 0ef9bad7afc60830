"""Events exchanged with the other SDKs, which are built from their registries."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "spec-conformance" / "peers"
NAMES = list(json.loads((PEERS / "peers.json").read_text(encoding="utf-8"))["peers"])


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.timeout(900)  # the first run downloads and builds a runner
@pytest.mark.parametrize("peer", NAMES)
def test_peer_has_the_declared_deviations(peer):
    """A run finds the declared deviations and no others, with the counts of results.json."""
    done = subprocess.run(
        [sys.executable, str(PEERS), peer], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if ": skipped: " in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
