"""Conformance: the clauses of the specification, the vectors that show them, and the report.

The data is language-neutral and stands in ``spec-conformance`` of the repository: clauses
in ``clauses.toml``, cases in ``vectors``. Here is what reads it and holds the library
against it. `library` finds the data, `notation` reads values, `doors` and `judging` are
used by `kinds`, which runs a case, with `behaviour`, `carried`, `over_http` and `signed`
for some; `shown` runs all, and `report` writes what came of it.
"""
