"""The examples of the docstrings run, and print what they say."""

from __future__ import annotations

import doctest

import pytest

from cloudevents_kafka.oauth import Token, TokenCommand, TokenEndpoint, TokenError
from cloudevents_kafka.protocol import OAuthBearer
from cloudevents_kafka.spark.pipeline import to_java_settings


@pytest.mark.parametrize(
    "name", [Token, TokenCommand, TokenEndpoint, TokenError, OAuthBearer, to_java_settings]
)
def test_examples(name):
    """Each public name for tokens has an example."""
    (test,) = doctest.DocTestFinder(recurse=False).find(name, name.__name__)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
