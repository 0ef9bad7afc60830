"""What Prometheus reads of a pipeline."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from cloudevents_kafka.spark.pipeline.watching import FIGURES, PREFIX

_LABELS = {figure.name: figure.labels for figure in FIGURES}


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return the samples of Prometheus' text, by their names without the prefix and the values of labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix(PREFIX)
            if name in _LABELS:
                assert set(sample.labels) == set(_LABELS[name])
                found[name, *(sample.labels[label] for label in _LABELS[name])] = sample.value
    return found
