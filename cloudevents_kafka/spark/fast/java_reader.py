"""The fast path in Java: a function that Spark's own compiled code calls for each row.

Its source is in ``java/``. Spark brings the compiler that it uses for its own code; so
no jar is published, no tool is needed, and executors get the classes as they get any
jar that is added to a session. This takes a second, once a session.
"""

from __future__ import annotations

import logging
import zipfile
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from cloudevents_kafka.attributes.extension_types import constrained_names, extension_names
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.spark.schema import event_schema, wire_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CATALOG: Final = "cloudevents_kafka"
_SETTING: Final = f"spark.sql.catalog.{_CATALOG}"
_CATALOG_CLASS: Final = "cloudevents_kafka.spark.Functions"
# Each uses only those before it.
_CLASSES: Final = ("Text", "Time", "Names", "Attributes", "Document", "Reader", "Functions")
_log: Final = logging.getLogger(__name__)


def reader(df: DataFrame) -> str | None:
    """Return SQL that reads ``value`` and ``headers`` to a struct of `event_schema`.

    It is null for records that are not surely valid. None where Spark cannot be given
    classes: through Spark Connect, and, said in a warning, on clusters that do not allow it.
    """
    if not hasattr(df, "_jdf"):  # Spark Connect has no Java at this end
        return None
    if not _has_classes(df.sparkSession):
        return None
    known = ",".join(sorted({*CORE, *extension_names()}))
    return f"{_CATALOG}.read(`value`, headers, '{','.join(sorted(constrained_names()))}', '{known}')"


def either(read: str, exact: str) -> str:
    """Return SQL for the first of two structs, of `event_schema` and of `wire_schema`, that is not null."""
    return f"{_CATALOG}.either({read}, {exact})"


def _has_classes(spark: SparkSession) -> bool:
    """Tell whether a session has the classes; one that was not asked before is given them."""
    # Not at the top: a Python that has Spark Connect alone has no py4j.
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has none

    try:
        if spark.conf.get(_SETTING, None) is None:
            _add_classes(spark)
    except (Py4JError, PySparkException, OSError) as error:
        spark.conf.unset(_SETTING)
        _log.warning(
            "decode_events reads by column expressions, which are slower: no class can be added: %s", error
        )
        return False
    return True


def _add_classes(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001 (the only way to the compiler from Python)
    jar = jvm.java.io.File.createTempFile("cloudevents-kafka-", ".jar")
    jar.deleteOnExit()
    with zipfile.ZipFile(jar.getPath(), "w") as archive:
        for name, code in _compile(jvm).items():
            archive.writestr(f"{name.replace('.', '/')}.class", code)
    spark.sql(f"ADD JAR '{jar.toURI()}'")
    spark.conf.set(f"{_SETTING}.row", event_schema().json())
    spark.conf.set(f"{_SETTING}.wire", wire_schema().json())
    spark.conf.set(_SETTING, _CATALOG_CLASS)
    spark.sql(f"SELECT {either('NULL', 'NULL')}")  # planned, not run: fails where the classes are not found


def _compile(jvm: Any) -> dict[str, bytes]:
    """Compile the classes, by their full names."""
    compiled: dict[str, bytes] = {}
    loader = jvm.Thread.currentThread().getContextClassLoader()
    for name in _CLASSES:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.setTargetVersion(8)  # older ones have no static methods of interfaces
        compiler.setDebuggingInformation(True, True, False)  # file and line in stack traces, no variables
        compiler.cook(resources.files(__package__).joinpath("java", f"{name}.java").read_text("utf-8"))
        compiled |= {name: bytes(code) for name, code in compiler.getBytecodes().items()}
        loader = compiler.getClassLoader()
    return compiled
