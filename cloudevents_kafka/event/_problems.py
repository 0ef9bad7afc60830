"""Find all problems of values from which no valid event can be made; each problem names its clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.codecs.payload import to_payload
from cloudevents_kafka.problems import DataError, InvalidEvent, Problem


def find_problems(
    attributes: dict[str, Any], data: Any, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return attributes in canonical form, or raise `InvalidEvent` with all problems of the values.

    ``before`` contains the attributes of the event before the change. An invalid value in ``before``, which
    lenient reading has accepted, is accepted again.
    """
    attributes, problems = check_values(attributes)
    if problems and before is not None:
        problems = [one for one in problems if not _is_kept(one, attributes, before)]
    if not problems:
        return attributes
    content_type = attributes.get("datacontenttype")
    try:
        to_payload(data, content_type if isinstance(content_type, str) else None, attributes)
    except DataError as error:
        problems.append(data_problem(error))
    raise InvalidEvent(problems)


def _is_kept(problem: Problem, attributes: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether a value already caused the same problem before the event was changed."""
    name = str(problem.attribute)
    return attributes.get(name) == before.get(name) and problem in check_values({**before})[1]


def data_problem(error: DataError) -> Problem:
    """Return the problem of data that cannot be encoded."""
    # J-10: "MUST translate the data value to a JSON value"
    return Problem("data", str(error), "J-10")
