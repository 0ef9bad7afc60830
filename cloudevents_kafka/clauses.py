"""The clauses this library names in its errors: a short id, and where the text stands.

Ids are those of ``spec-conformance``. Sections are of the CloudEvents core
specification, its JSON, Avro and Protobuf formats, and the Kafka protocol binding.
"""

from __future__ import annotations

from typing import Final

SECTIONS: Final[dict[str, str]] = {
    "N-01": "core: Naming Conventions",
    "N-03": "core: Naming Conventions",
    "N-04": "core: Naming Conventions",
    "N-05": "core: Context Attributes",
    "R-01": "core: REQUIRED Attributes",
    "R-02": "core: id",
    "R-04": "core: source",
    "R-05": "core: specversion",
    "R-06": "core: type",
    "R-07": "core: datacontenttype",
    "R-11": "core: dataschema",
    "R-12": "core: subject",
    "R-13": "core: time",
    "T-01": "core: Type System",
    "T-03": "core: Type System, Boolean",
    "T-04": "core: Type System, Integer",
    "T-05": "core: Type System, Integer",
    "T-06": "core: Type System, String",
    "T-09": "core: Type System, Binary",
    "T-10": "core: Type System, URI",
    "T-11": "core: Type System, URI-reference",
    "T-12": "core: Type System, Timestamp",
    "E-01": "extension documents",
    "J-01": "JSON format 2",
    "J-03": "JSON format 2.2",
    "J-10": "JSON format 3.1.1",
    "J-12": "JSON format 3.1.1",
    "J-14": "JSON format 3.1.2",
    "J-16": "JSON format 3.1.2",
    "A-01": "Avro format 2.4",
    "A-06": "Avro format 3",
    "AC-01": "Avro compact format 2.2",
    "AC-02": "Avro compact format 2.1",
    "AC-03": "Avro compact format",
    "AC-04": "Avro compact format 2.2",
    "P-01": "Protobuf format 2.3",
    "P-02": "Protobuf format 2.1",
    "P-03": "Protobuf format 3",
    "P-04": "Protobuf format 3",
    "P-05": "Protobuf format 4",
    "K-01": "Kafka binding 1.3",
    "K-04": "Kafka binding 3.2.1",
    "K-05": "Kafka binding 3.2.3.1",
    "K-06": "Kafka binding 3.2.3",
    "K-08": "Kafka binding 3.3.2",
    "K-09": "Kafka binding 3",
    "K-10": "Kafka binding 3",
    "K-11": "Kafka binding 3",
    "K-15": "Kafka binding 3.3.1",
    "K-19": "Kafka binding 2.1",
    "K-20": "Kafka binding 3",
}
