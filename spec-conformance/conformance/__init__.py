"""Run the clauses of the specification against the library and write the report.

The data is language-neutral and is in the folder above: clauses in ``clauses.toml``, cases in ``vectors``.
`app` has the commands, `clauses` and `kip625`. Read `notation` and ``_case`` first. ``_entry_cases``
(which uses ``_raw_encoders``), ``_reading_cases``, ``_writing_cases`` and ``_extension_cases`` have a
function for each kind of case, which compares by ``_compare``. ``_dataset`` reads the files; ``_results``
runs all clauses and adds the results of tests. `report` and `flat_records` write the files in the folder
above.
"""

from conformance._case import MODES_AND_FORMATS, Case, CaseFailed
from conformance._dataset import Clause, Dataset, DatasetError, Document
from conformance._results import (
    ClauseResult,
    Result,
    ResultsError,
    Status,
    read_results,
    run_clauses,
    worst_of,
)

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
