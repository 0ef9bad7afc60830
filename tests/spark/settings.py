"""Settings of a session that change no event, by the part of Spark that they configure.

Missing is ``spark.sql.optimizer.collapseProjectAlwaysInline``, which
makes Spark's optimizer copy each column into every use of it.
"""

from __future__ import annotations

Settings = dict[str, str]


def _one(name: str, *values: object) -> dict[str, Settings]:
    """Return a setting with each of these values."""
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return {f"{name}={text}": {f"spark.sql.{name}": text} for text in texts}


_RESERVED = {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.enforceReservedKeywords": "true"}
_INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
_NTZ = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}
_QUOTED = {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"}

SETTINGS: dict[str, Settings] = {
    "none": {},
    # ANSI and the parser
    **_one("ansi.enabled", False, True),
    "reserved keywords": _RESERVED,
    "double-quoted identifiers": _QUOTED,
    "both": _RESERVED | _QUOTED,
    "relation precedence": {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.relationPrecedence": "true"},
    **_one("parser.escapedStringLiterals", True),
    **_one("parser.quotedRegexColumnNames", True),
    **_one("legacy.parseQueryWithoutEof", True),
    **_one("legacy.bangEqualsNot", True),
    **_one("legacy.exponentLiteralAsDecimal.enabled", True),
    **_one("legacy.literal.pickMinimumPrecision", False),
    **_one("variable.substitute", False),
    **_one("legacy.setopsPrecedence.enabled", True),
    **_one("storeAssignmentPolicy", "LEGACY", "STRICT"),
    # names
    **_one("caseSensitive", True),
    **_one("columnNameOfCorruptRecord", "id", "error", "data", "extensions", "value", "headers", "~"),
    **_one("useCommonExprIdForAlias", False),
    **_one("legacy.v1IdentifierNoCatalog", True),
    # times
    **_one("session.timeZone", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "-18:00"),
    **_one("timestampType", "TIMESTAMP_NTZ"),
    **_one("datetime.java8API.enabled", True),
    **_one("legacy.timeParserPolicy", "LEGACY", "EXCEPTION"),
    **_one("legacy.typeCoercion.datetimeToString.enabled", True),
    # texts
    **_one("legacy.charVarcharAsString", True),
    **_one("preserveCharVarcharTypeInfo", True),
    **_one("icu.caseMappings.enabled", False),
    **_one("legacy.javaCharsets", True),
    **_one("legacy.codingErrorAction", True),
    **_one("chunkBase64String.enabled", False),
    **_one("binaryOutputStyle", "HEX", "UTF-8"),
    **_one("legacy.castComplexTypesToString.enabled", True),
    **_one("function.concatBinaryAsString", True),
    **_one("legacy.allowZeroIndexInFormatString", True),
    # maps, arrays and nulls
    **_one("mapKeyDedupPolicy", "LAST_WIN"),
    **_one("legacy.sizeOfNull", False),
    **_one("legacy.createEmptyCollectionUsingStringType", True),
    **_one("legacy.allowNullComparisonResultInArraySort", True),
    **_one("legacy.followThreeValuedLogicInArrayExists", False),
    **_one("legacy.disableMapKeyNormalization", True),
    **_one("legacy.inSubqueryNullability", True),
    **_one("legacy.nullInEmptyListBehavior", True),
    # JSON
    **_one("jsonGenerator.ignoreNullFields", False),
    **_one("jsonGenerator.writeNullIfWithDefaultValue", False),
    **_one("json.enablePartialResults", False),
    **_one("json.enableExactStringParsing", False),
    **_one("json.useUnsafeRow", True),
    **_one("json.filterPushdown.enabled", False),
    **_one("legacy.json.allowEmptyString.enabled", True),
    **_one("legacy.json.enableDateTimeParsingFallback", True),
    **_one("optimizer.enableJsonExpressionOptimization", False),
    # code
    "interpreted": _INTERPRETED,
    **_one("codegen.wholeStage", False),
    **_one("codegen.factoryMode", "CODEGEN_ONLY"),
    **_one("codegen.maxFields", 1),
    **_one("codegen.hugeMethodLimit", 100),
    **_one("codegen.methodSplitThreshold", 1),
    **_one("codegen.splitConsumeFuncByOperator", False),
    **_one("subexpressionElimination.enabled", False),
    **_one("subexpressionElimination.skipForShortcutExpr", True),
    **_one("alwaysInlineCommonExpr", True),
    # the optimizer
    **_one("optimizer.avoidCollapseUDFWithExpensiveExpr", False),
    **_one("optimizer.nestedSchemaPruning.enabled", False),
    **_one("optimizer.expression.nestedPruning.enabled", False),
    **_one("optimizer.serializer.nestedSchemaPruning.enabled", False),
    **_one("optimizer.inSetConversionThreshold", 0),
    **_one("constraintPropagation.enabled", False),
    **_one("execution.removeRedundantProjects", False),
    **_one("lightweightPlanChangeValidation", False),
    **_one("planChangeValidation", True),
    **_one("optimizer.plannedWrite.enabled", False),
    **_one(
        "optimizer.excludedRules",
        *(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in (
                "CollapseProject",
                "ConvertToLocalRelation",
                "ConstantFolding",
                "NullPropagation",
                "SimplifyConditionals",
                "ColumnPruning",
            )
        ),
    ),
    # how it runs
    **_one("adaptive.enabled", False),
    **_one("adaptive.forceApply", True),
    **_one("execution.usePartitionEvaluator", True),
    **_one("leafNodeDefaultParallelism", 1, 7),
    **_one("files.maxPartitionBytes", 200_000),
    **_one("parquet.enableVectorizedReader", False),
    **_one("parquet.enableNestedColumnVectorizedReader", False),
    **_one("parquet.columnarReaderBatchSize", 3),
    **_one("columnVector.offheap.enabled", True),
    **_one("debug.maxToStringFields", 0),
    **_one("maxMetadataStringLength", 4),
    # Python and Arrow
    **_one("execution.arrow.maxRecordsPerBatch", 1, 0),
    **_one("execution.arrow.maxBytesPerBatch", 100),
    **_one("execution.arrow.useLargeVarTypes", True),
    **_one("execution.arrow.pyspark.enabled", True),
    **_one("execution.pandas.convertToArrowArraySafely", True),
    **_one("execution.pandas.structHandlingMode", "dict"),
    **_one("execution.pandas.inferPandasDictAsMap", True),
    **_one("execution.pandas.udf.buffer.size", 4096),
    **_one("execution.pythonUDF.arrow.enabled", True),
    **_one("execution.pythonUDF.arrow.concurrency.level", 2),
    **_one("execution.pyspark.udf.simplifiedTraceback.enabled", False),
    **_one("execution.pyspark.udf.faulthandler.enabled", True),
    **_one("pyspark.inferNestedDictAsStruct.enabled", True),
    # several
    "NTZ, reserved keywords, corrupt id": {
        **_NTZ,
        **_RESERVED,
        "spark.sql.columnNameOfCorruptRecord": "id",
        "spark.sql.session.timeZone": "Asia/Kathmandu",
    },
    "not ANSI, NTZ, LEGACY": {
        **_NTZ,
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.legacy.sizeOfNull": "true",
    },
    "interpreted, reserved keywords, case": {**_INTERPRETED, **_RESERVED, "spark.sql.caseSensitive": "true"},
    "nulls written, Arrow by one, partial": {
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.sql.json.enablePartialResults": "false",
        "spark.sql.columnNameOfCorruptRecord": "error",
    },
    "interpreted, nothing collapsed, regular expressions for names": {
        **_INTERPRETED,
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.CollapseProject",
        "spark.sql.parser.quotedRegexColumnNames": "true",
    },
}

SAMPLE = (
    "NTZ, reserved keywords, corrupt id",
    "nulls written, Arrow by one, partial",
    "interpreted, nothing collapsed, regular expressions for names",
)
"""The settings that are tried for the vectors; with more records all of them are."""
