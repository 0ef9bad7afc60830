"""Tests of which most exceed their limit; `test_time_limits` runs them."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies

pytestmark = pytest.mark.timeout(0.5)
never = threading.Event()


def test_call():
    never.wait()


def test_all_exceptions_are_caught():
    while True:
        with suppress(Exception):
            never.wait()


def test_swallowed_once():
    with suppress(BaseException):
        never.wait()
    never.wait()


def test_swallowed():
    with suppress(BaseException):
        never.wait()


@settings(deadline=None, database=None)
@given(strategies.integers())
def test_property(number):
    never.wait()


@pytest.fixture
def slow_setup():
    never.wait()


def test_setup(slow_setup):
    pass


@pytest.fixture
def slow_teardown():
    yield
    never.wait()


@pytest.fixture
def two_teardowns(slow_teardown):
    yield
    never.wait()


def test_teardown(two_teardowns):
    pass


def test_call_and_teardown(two_teardowns):
    never.wait()


@pytest.mark.timeout(1)
def test_good_whose_report_is_slow():
    pass


@pytest.mark.timeout(20)
def test_good():
    pass
