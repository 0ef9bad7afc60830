"""The examples in the docstrings for Spark print what they say."""

from __future__ import annotations

import pytest

from tests.support import docstrings

EXAMPLES = [doc for doc in docstrings.with_examples() if doc.of_spark and not doc.needs]


@pytest.mark.parametrize("doc", EXAMPLES, ids=lambda doc: f"{doc.module}.{doc.name}")
def test_examples_run(doc: docstrings.Docstring, spark, tmp_path) -> None:
    """Each example without a broker prints what the docstring says."""
    docstrings.run(doc, spark=spark, folder=f"{tmp_path}/")
