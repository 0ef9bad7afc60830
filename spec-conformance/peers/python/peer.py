"""A runner for a major version of the Python SDK, with the line protocol of ../lines.py."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

sdk = importlib.import_module(f"sdk{sys.argv[1]}")


def solve(task: dict[str, Any]) -> dict[str, Any]:
    try:
        return (
            {"event": sdk.decode(task["record"])} if task["op"] == "decode" else {"record": sdk.encode(task)}
        )
    except Exception as error:  # noqa: BLE001 - an error of the peer is its answer
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(solve(json.loads(line))), flush=True)
