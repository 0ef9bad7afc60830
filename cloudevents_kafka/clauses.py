"""The clauses of the specification that errors cite, and their sections.

The ids are those of ``spec-conformance``. The sections are those of the CloudEvents core
specification, its extension documents, its JSON, Avro and Protobuf formats, and the Kafka
protocol binding.
"""

from __future__ import annotations

from typing import Final

_CLAUSES: Final = {
    "core: Naming Conventions": "N-01 N-02 N-03 N-04 N-06",
    "core: Context Attributes": "N-05",
    "core: REQUIRED Attributes": "R-01",
    "core: id": "R-02",
    "core: source": "R-04",
    "core: specversion": "R-05",
    "core: type": "R-06 R-17",
    "core: datacontenttype": "R-07",
    "core: dataschema": "R-11",
    "core: subject": "R-12",
    "core: time": "R-13",
    "core: Type System": "T-01",
    "core: Type System, Boolean": "T-03",
    "core: Type System, Integer": "T-04 T-05",
    "core: Type System, String": "T-06",
    "core: Type System, Binary": "T-09",
    "core: Type System, URI": "T-10",
    "core: Type System, URI-reference": "T-11",
    "core: Type System, Timestamp": "T-12",
    "core: Extension Context Attributes": "E-01",
    "core: Size Limits": "S-02",
    "extension partitioning": "X-01",
    "extension distributed-tracing": "X-02",
    "extension sequence": "X-03",
    "extension dataref": "X-04",
    "extension sampledrate": "X-05",
    "extension expirytime": "X-06 X-16",
    "extension recordedtime": "X-07 X-20 X-54",
    "extension severity": "X-08 X-23 X-24 X-50",
    "extension deprecation": "X-09 X-27 X-70",
    "extension authcontext": "X-10 X-30 X-31",
    "extension correlation": "X-11",
    "extension data-classification": "X-12 X-35",
    "extension bam": "X-13 X-33",
    "extension opcua": "X-14 X-40 X-64",
    "extension verifiability": "X-15 X-43 X-44 X-46 X-60 X-62",
    "JSON format 2": "J-01",
    "JSON format 2.2": "J-03",
    "JSON format 3.1.1": "J-10 J-12",
    "JSON format 3.1.2": "J-14 J-16",
    "Avro format 2.4": "A-01",
    "Avro format 3": "A-06",
    "Avro compact format 2.2": "AC-01 AC-04",
    "Avro compact format 2.1": "AC-02",
    "Protobuf format 2.3": "P-01",
    "Protobuf format 2.1": "P-02",
    "Protobuf format 3": "P-03",
    "Protobuf format 4": "P-05",
    "Kafka binding 1.3": "K-01",
    "Kafka binding 3.2.1": "K-04",
    "Kafka binding 3.2.3.1": "K-05",
    "Kafka binding 3.2.3": "K-06",
    "Kafka binding 3.3.2": "K-08",
    "Kafka binding 3": "K-09 K-10 K-11 K-20",
    "Kafka binding 3.3.1": "K-15",
}

SECTIONS: Final = {clause: section for section, clauses in _CLAUSES.items() for clause in clauses.split()}
"""The section of each clause by its id.

Examples:
    >>> from cloudevents_kafka.clauses import SECTIONS
    >>> SECTIONS["R-02"]
    'core: id'
"""
