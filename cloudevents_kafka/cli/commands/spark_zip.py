"""``spark-zip``: write the package to a zip file, for Spark's Python workers that do not have the package."""

from __future__ import annotations

from pathlib import Path

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE


@click.command()
@click.argument("file", type=FILE)
def command(file: str) -> None:
    """Write this package to a zip file, for Spark's Python workers that do not have the package.

    If a record is not a valid event in binary mode or in JSON, decode_events needs the package in the Python
    workers of the Spark job. Write the zip to FILE, and then either

    \b
    start Spark with --py-files FILE, or with the setting that this command prints
    or call  spark.sparkContext.addPyFile("FILE")
    or, on Spark Connect,  spark.addArtifacts("FILE", pyfile=True)

    The Python of the workers must have msgspec and the packages that PySpark needs for Arrow (pandas,
    pyarrow). Events in Avro also need fastavro.
    """
    from cloudevents_kafka.spark.package_zip import write_zip

    path = Path(file).absolute()
    if path.suffix != ".zip":
        raise BadUsage(f"FILE must end in .zip, as Spark expects of Python packages, got {file}")
    try:
        write_zip(path)
    except OSError as error:
        raise BadUsage(f"cannot write {file}: {error.strerror or error}") from error
    click.echo(f"spark.submit.pyFiles {path}")
