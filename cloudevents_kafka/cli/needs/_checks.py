"""The checks: packages of an extra, Java, jars of Kafka and Spark, a free port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cloudevents_kafka.cli.needs._findings import Check, Finding
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.primitives.plural import pluralize

# The oldest versions that work, as pyproject.toml has them, of what users often have already.
OLDEST: Final = {
    "pyspark": (4, 0),
    "pandas": (2, 2),
    "pyarrow": (18, 0),
    "protobuf": (5, 0),
    "cramjam": (2, 9),
}

# The import names of the packages that each extra of this distribution installs and cannot do without.
EXTRAS: Final = {
    "protobuf": ("google.protobuf",),
    "protocol": ("cramjam",),
    "spark": ("pyspark", "py4j", "pandas", "pyarrow"),
}
_DISTRIBUTIONS: Final = {"google.protobuf": "protobuf"}


def packages(extra: str) -> Check:
    """Return the check of the packages of an extra, which imports none of them."""

    def check(_fetch: bool) -> Finding:  # noqa: FBT001
        if problems := list(filter(None, map(_problem, EXTRAS[extra]))):
            return Finding(problem=f"{', '.join(problems)}: pip install 'cloudevents-kafka[{extra}]'")
        return Finding(found=", ".join(map(_describe, EXTRAS[extra])))

    return check


def _problem(name: str) -> str:
    """Return a package that is missing, or what is wrong with its version."""
    if not is_installed(name):
        return name
    distribution = _DISTRIBUTIONS.get(name, name)
    oldest = OLDEST.get(distribution, ())
    if _release(distribution) >= oldest:
        return ""
    return f"{distribution} {'.'.join(map(str, oldest))} or newer (got {version(distribution)})"


def is_installed(name: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):  # the parent package is missing, or it was replaced
        return False


def _release(distribution: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; of an unknown one, the oldest that works."""
    try:
        parts = version(distribution).split(".")[:2]
    except PackageNotFoundError:
        return OLDEST.get(distribution, ())
    return tuple(int(part) for part in parts if part.isdecimal())


def _describe(name: str) -> str:
    distribution = _DISTRIBUTIONS.get(name, name)
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return distribution


def java(_fetch: bool) -> Finding:  # noqa: FBT001
    """Return the Java that Kafka and Spark would use."""
    from cloudevents_kafka.jvm import NoJava, find_java

    try:
        found = find_java()
    except NoJava as error:
        return Finding(problem=f"Java: {error}")
    return Finding(found=f"{found.version} in {found.home}")


def kafka_jars(fetch: bool) -> Finding:  # noqa: FBT001
    """Return the jars of the local broker."""
    from cloudevents_kafka.jvm import resolve
    from cloudevents_kafka.testing.local import KAFKA_VERSION, kafka_coordinates

    wanted = kafka_coordinates(KAFKA_VERSION)
    return _jars(f"Kafka {KAFKA_VERSION}", wanted, (), lambda: resolve(wanted), fetch=fetch)


def connector(fetch: bool) -> Finding:  # noqa: FBT001
    """Return the jars of Spark's Kafka connector for the installed PySpark."""
    from cloudevents_kafka.spark.connector import IN_PYSPARK, connector_jars, kafka_package

    if _problem("pyspark"):  # the check of the extra reports it; its jars need at least a place
        return _place_of_jars()
    name = f"Spark's Kafka connector {version('pyspark')}"
    return _jars(name, [kafka_package()], IN_PYSPARK, connector_jars, fetch=fetch)


def _place_of_jars() -> Finding:
    """Return why the jars of a PySpark that is not here could not be stored, if no PySpark's are."""
    from cloudevents_kafka.jvm import CacheNotWritable, cache_folder, check_cache

    try:
        if not [*(cache_folder() / "jars").glob("spark-sql-kafka-*")]:
            check_cache()
    except CacheNotWritable as error:
        return Finding(problem=f"the jars of Spark: {error}")
    return Finding()


def table_format(name: str) -> Check:
    """Return the check of the jars of ``delta`` or ``iceberg`` for the installed PySpark."""

    def check(fetch: bool) -> Finding:  # noqa: FBT001
        if _problem("pyspark"):
            return Finding()
        from cloudevents_kafka.spark.table_formats import (
            NoTableFormat,
            excluded_from,
            table_jars,
            table_package,
        )

        try:
            package = table_package(name)
        except NoTableFormat as error:
            return Finding(problem=f"{name.capitalize()}: {error}")
        return _jars(
            f"{name.capitalize()} {package.rpartition(':')[2]}",
            [package],
            excluded_from(name),
            lambda: table_jars([name]),
            fetch=fetch,
        )

    return check


def _jars(
    name: str,
    coordinates: Sequence[str],
    exclude: Sequence[str],
    resolve: Callable[[], list[Path]],
    *,
    fetch: bool,
) -> Finding:
    from cloudevents_kafka.jvm import cached, check_cache

    jars = cached(coordinates, exclude=exclude)
    try:
        if jars is None and fetch:
            jars = resolve()
        elif jars is None:
            check_cache()
    except CloudEventsKafkaError as error:
        return Finding(problem=f"the jars of {name}: {error}")
    if jars is None:
        advice = "the first command that needs them fetches them, or: cloudevents-kafka doctor --fetch"
        return Finding(problem=f"the jars of {name}: {advice}", later=True)
    size = sum(jar.stat().st_size for jar in jars) / 1e6
    return Finding(found=f"{name}: {pluralize(len(jars), 'jar')}, {size:.0f} MB, in {jars[0].parent}")


def port(number: int) -> Check:
    """Return the check that a port on loopback is free."""

    def check(_fetch: bool) -> Finding:  # noqa: FBT001
        from cloudevents_kafka.testing.local import is_free

        if is_free(number):
            return Finding(found=f"{number} is free")
        advice = (
            "another program listens on it; stop that one, or pass another --port, or none for a free one"
        )
        return Finding(problem=f"port {number} to be free: {advice}")

    return check
