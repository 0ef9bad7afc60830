"""Conformance: run the clauses of the specification against the library and write the report.

The data is language-neutral and is in ``spec-conformance``: clauses in ``clauses.toml``,
cases in ``vectors``. Read `notation` and ``_vectors`` first, the types of a case;
``_dataset`` reads the files. ``_cases`` runs a case, with ``_entry_points`` (which uses
``_raw_encoders``) for attributes, ``_extensions``, ``_signing`` and ``_http`` for some
kinds, and ``_assertions`` to compare. ``_runner`` runs all clauses and adds the results of
tests, which ``_results`` reads. `report` and `flat_records` write the files in ``spec-conformance``.
"""

from cloudevents_kafka.conformance._assertions import CaseFailed
from cloudevents_kafka.conformance._dataset import Clause, Dataset, DatasetError, Document
from cloudevents_kafka.conformance._results import Result, ResultsError, Status, read_results, worst_of
from cloudevents_kafka.conformance._runner import ClauseResult, run_clauses
from cloudevents_kafka.conformance._vectors import MODES_AND_FORMATS, Case

__all__ = [
    "MODES_AND_FORMATS",
    "Case",
    "CaseFailed",
    "Clause",
    "ClauseResult",
    "Dataset",
    "DatasetError",
    "Document",
    "Result",
    "ResultsError",
    "Status",
    "read_results",
    "run_clauses",
    "worst_of",
]
