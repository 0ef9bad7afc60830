"""Run a command of this folder: see `conformance.app`."""

from __future__ import annotations

from conformance.app import app

app(prog_name="python spec-conformance")
