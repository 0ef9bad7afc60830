"""``spark-jar``: write the jar of the Java function that `decode_events` uses."""

from __future__ import annotations

from pathlib import Path

import click

from cloudevents_kafka.cli.needs import packages, require
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE


@click.command()
@click.argument("file", type=FILE)
def command(file: str) -> None:
    """Write the jar of the Java function that decode_events uses.

    decode_events adds the jar automatically, also on Spark Connect. To add the jar once for all sessions,
    write the jar to FILE, and then either

    \b
    on the client    set spark.sql.catalog.cloudevents_kafka.jar to the path
                     of FILE
    on the server    start Spark with --jars FILE and with the settings that this
                     command prints, one on each line, as for spark-defaults.conf

    One jar serves all versions of Spark 4.
    """
    require("spark-jar", packages("spark"))
    from cloudevents_kafka.spark.java.jar import NoReaderJar, packaged_jar
    from cloudevents_kafka.spark.java.reader import catalog_settings

    try:
        Path(file).write_bytes(packaged_jar().read_bytes())
    except NoReaderJar as error:
        raise BadUsage(str(error)) from error
    except OSError as error:
        raise BadUsage(f"cannot write {file}: {error.strerror or error}") from error
    for name, value in catalog_settings().items():
        click.echo(f"{name} {value}")
