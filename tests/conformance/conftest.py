"""A fixture that runs the commands of ``spec-conformance``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from conformance.app import app


@pytest.fixture
def run() -> Callable[..., Result]:
    """A function that runs a command in this process and returns its exit code, stdout and stderr."""

    def call(*args: object) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return call
