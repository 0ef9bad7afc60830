"""What commands need in addition to this package: extras, Java, jars and ports.

A command calls the function `require` before other work. The command ``doctor`` prints the results of the
same checks for all commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.primitives.plural import pluralize


class Finding(NamedTuple):
    """The result of a check for a part that a command needs.

    ``found`` describes the part that was checked, and ``problem`` says what is missing and what to do. Both
    texts are empty if the check was not possible because another part is missing. If ``later`` is True, the
    part is missing, but the first command that needs the part downloads it.
    """

    found: str = ""
    problem: str = ""
    later: bool = False


# If its argument is true, a check downloads missing jars; otherwise, it only looks for the jars.
Check = Callable[[bool], Finding]


# The packages that each extra installs and needs: import names, with the oldest versions that work.
EXTRAS: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    "cli": {"tomlkit": (0, 13)},
    "metrics": {"prometheus_client": (0, 20)},
    "protobuf": {"google.protobuf": (5, 0)},
    "protocol": {"cramjam": (2, 9)},
    "readers": {
        "deltalake": (1, 6),
        "duckdb": (1, 4),
        "polars": (1, 30),
        "pyiceberg": (0, 11),
        "pytz": (2024, 1),
    },
    "report": {"pygal": (3, 1)},
    "spark": {"pyspark": (4, 0), "py4j": (), "pandas": (2, 2), "pyarrow": (18, 0)},
    "testing": {"jgo": (3, 2)},
    "tracing": {"opentelemetry.trace": (1, 45)},
}
# Of packages whose import names differ.
_DISTRIBUTIONS: Final = {"google.protobuf": "protobuf", "opentelemetry.trace": "opentelemetry-api"}


def packages(extra: str) -> Check:
    """Return a function that checks the packages of an extra, without importing these packages."""

    def check(_fetch: bool) -> Finding:  # noqa: FBT001
        states = [_package(name, oldest) for name, oldest in EXTRAS[extra].items()]
        if problems := [state.problem for state in states if state.problem]:
            return Finding(problem=f"{', '.join(problems)}: {pip_install(extra)}")
        return Finding(", ".join(state.found for state in states))

    return check


def _package(name: str, oldest: tuple[int, ...]) -> Finding:
    """Return the version of a package, or the problem that it is missing or too old, without importing it."""
    distribution = _DISTRIBUTIONS.get(name, name)
    try:
        found = version(distribution) if find_spec(name) else None
    except PackageNotFoundError:  # the package can be imported, but its version is unknown
        return Finding(distribution)
    except (ModuleNotFoundError, ValueError):  # the parent package is missing, or it was replaced
        found = None
    if found is None:
        return Finding(problem=name)
    if tuple(int(part) for part in found.split(".")[:2] if part.isdecimal()) < oldest:
        return Finding(problem=f"{distribution} {'.'.join(map(str, oldest))} or newer (got {found})")
    return Finding(f"{distribution} {found}")


def _no_pyspark() -> bool:
    return bool(_package("pyspark", EXTRAS["spark"]["pyspark"]).problem)


def java(_fetch: bool) -> Finding:  # noqa: FBT001
    """Check which Java installation Kafka and Spark would use, and return the result."""
    from cloudevents_kafka.jvm import NoJava, find_java

    try:
        found = find_java()
    except NoJava as error:
        return Finding(problem=f"Java: {error}")
    return Finding(f"{found.version} in {found.home}")


def kafka_jars(fetch: bool) -> Finding:  # noqa: FBT001
    """Check for the jars of the local broker, and return the result.

    With ``fetch``, missing jars are downloaded.
    """
    from cloudevents_kafka.jvm import resolve
    from cloudevents_kafka.testing.local import KAFKA_VERSION, kafka_coordinates

    wanted = kafka_coordinates(KAFKA_VERSION)
    return _jars(f"Kafka {KAFKA_VERSION}", wanted, lambda: resolve(wanted), fetch=fetch)


def connector(fetch: bool) -> Finding:  # noqa: FBT001
    """Check for the jars of the Kafka connector that fits the installed PySpark, and return the result.

    With ``fetch``, missing jars are downloaded.
    """
    from cloudevents_kafka.jvm import CacheNotWritable, cache_folder, check_cache
    from cloudevents_kafka.spark.connector import IN_PYSPARK, connector_jars, kafka_package

    if not _no_pyspark():
        name = f"Spark's Kafka connector {version('pyspark')}"
        return _jars(name, [kafka_package()], connector_jars, IN_PYSPARK, fetch=fetch)
    try:  # another check reports the missing PySpark; this check needs a cache folder for its jars
        if not [*(cache_folder() / "jars").glob("spark-sql-kafka-*")]:
            check_cache()
    except CacheNotWritable as error:
        return Finding(problem=f"the jars of Spark: {error}")
    return Finding()


def class_archive(fetch: bool) -> Finding:  # noqa: FBT001
    """Check for the archive of Spark's classes, with which Spark starts faster, and return the result.

    With ``fetch``, the archive is written if it is missing.
    """
    from cloudevents_kafka.jvm import NoJava, find_java

    if _no_pyspark():
        return Finding()
    from cloudevents_kafka.spark.class_archive import ClassArchive
    from cloudevents_kafka.spark.pipeline.session import write_class_archive

    try:
        file = write_class_archive() if fetch else ClassArchive.of(find_java()).find()
    except NoJava:  # another check reports it
        return Finding()
    except CloudEventsKafkaError as error:
        return Finding(problem=f"the archive of Spark's classes: {error}")
    if file is None:
        return Finding(
            "none: Spark starts without the archive, but faster with it; --fetch writes it (170 MB)"
        )
    return Finding(f"{file.stat().st_size / 1e6:.0f} MB in {file.parent}")


def table_format(name: str) -> Check:
    """Return a function that checks whether the cache contains the jars of a table format.

    The jars fit the installed PySpark.
    """

    def check(fetch: bool) -> Finding:  # noqa: FBT001
        from cloudevents_kafka.spark import table_formats as formats

        try:
            package = "" if _no_pyspark() else formats.table_package(name)
        except formats.NoTableFormat as error:
            return Finding(problem=f"{name.capitalize()}: {error}")
        title, exclude = f"{name.capitalize()} {package.rpartition(':')[2]}", formats.excluded_from(name)
        fetched = partial(formats.table_jars, [name])
        return _jars(title, [package], fetched, exclude, fetch=fetch) if package else Finding()

    return check


def _jars(
    name: str,
    coordinates: Sequence[str],
    resolve: Callable[[], list[Path]],
    exclude: Sequence[str] = (),
    *,
    fetch: bool,
) -> Finding:
    from cloudevents_kafka.jvm import cached, check_cache

    try:
        jars = cached(coordinates, exclude=exclude) or (resolve() if fetch else [])
        if not jars:
            check_cache()
    except CloudEventsKafkaError as error:
        return Finding(problem=f"the jars of {name}: {error}")
    if not jars:
        advice = "the first command that needs the jars fetches them, or: cloudevents-kafka doctor --fetch"
        return Finding(problem=f"the jars of {name}: {advice}", later=True)
    size = sum(jar.stat().st_size for jar in jars) / 1e6
    return Finding(f"{name}: {pluralize(len(jars), 'jar')}, {size:.0f} MB, in {jars[0].parent}")


def port(number: int) -> Check:
    """Return a function that checks whether a port on the loopback interface is free."""

    def check(_fetch: bool) -> Finding:  # noqa: FBT001
        from cloudevents_kafka.testing.local import is_free

        if is_free(number):
            return Finding(f"{number} is free")
        advice = "stop that program, pass another --port, or pass no --port for a free port"
        return Finding(problem=f"port {number} to be free: another program listens on it; {advice}")

    return check


def require(feature: str, *checks: Check) -> None:
    """Run all checks of a feature, and download missing jars.

    Raises one `BadUsage` that lists all problems.
    """
    problems = [finding.problem for check in checks if (finding := check(True)).problem]
    if len(problems) == 1:
        raise BadUsage(f"{feature} needs {problems[0]}")
    if problems:
        raise BadUsage(f"{feature} was not started, because requirements are missing:\n{as_list(problems)}")


def as_list(texts: list[str]) -> str:
    """Return texts as the items of a list; in each item, all lines after the first line are indented."""
    return "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
