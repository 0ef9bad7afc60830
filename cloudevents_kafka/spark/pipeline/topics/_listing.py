"""The ids and the ends of many topics, by one request for all, and one text from Java for each.

A request for each topic, and some calls of Java for each answer, take seconds for a thousand topics, twice in
each batch. Java's clients print the values of their answers, so one call returns all of them. What the text
of an answer does not have, such as a topic without an id, is asked for topic by topic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

FEWEST: Final = 20
"""The number of topics from which on one request for all is better."""
_NAME: Final = r"[A-Za-z0-9._-]+"
_LISTED: Final = re.compile(rf"\(name=({_NAME}), topicId=([A-Za-z0-9_-]{{22}}), internal=")
_END: Final = re.compile(rf"[{{ ]({_NAME})-([0-9]+)=ListOffsetsResultInfo\(offset=(-?[0-9]+),")
Places = frozenset[tuple[str, str]]


def listed_ids(listings: Any) -> dict[str, str]:
    """Return the ids of topics by their names, as far as Java's ``TopicListing`` prints them."""
    return dict(_LISTED.findall(str(listings.toString())))


def ends_of(found: Any, places: Places) -> dict[str, dict[str, int]] | None:
    """Return the ends by topic and partition from Java's map of them, None if it does not print all."""
    ends: dict[str, dict[str, int]] = {}
    count = 0
    for topic, partition, offset in _END.findall(str(found.toString())):
        if (topic, partition) in places:
            ends.setdefault(topic, {})[partition] = int(offset)
            count += 1
    return ends if count == len(places) else None


class EndRequest:
    """Java's request of the ends of partitions, which is made once and changed where they change."""

    def __init__(self, new_map: Callable[[], Any], new_place: Callable[[str, int], Any], latest: Any) -> None:
        self._new_map, self._new_place, self._latest = new_map, new_place, latest
        self._map: Any = None
        self._places: Mapping[tuple[str, str], Any] = {}

    def of(self, places: Places) -> Any:
        """Return the request of places."""
        kept = {place: one for place, one in self._places.items() if place in places}
        if self._map is None or len(kept) < len(self._places):
            self._map = self._new_map()
            for one in kept.values():
                self._map.put(one, self._latest)
        for place in sorted(places - kept.keys()):
            kept[place] = self._new_place(place[0], int(place[1]))
            self._map.put(kept[place], self._latest)
        self._places = kept
        return self._map
