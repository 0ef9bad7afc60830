"""The options of ``pipeline`` on the command line and in a file, and their conversion to pipeline options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import click
import msgspec

from cloudevents_kafka.cli.data_schemas import REGISTRY, registry_settings
from cloudevents_kafka.cli.kafka.references import Reference, Written, read_settings, settings_of_pairs
from cloudevents_kafka.cli.kafka.settings import SettingFiles, Settings, load_settings
from cloudevents_kafka.cli.options_file import SETTINGS, read_options, resolve, to_toml
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.options import passed_options, struct_values
from cloudevents_kafka.primitives.options import Option, fields_of
from cloudevents_kafka.spark import pipeline
from cloudevents_kafka.spark.pipeline.options.removed import OPTIONS, removed_text

# Settings that are passed to Spark's Kafka source, in addition to kafka.… and spark.….
_SOURCE_SETTINGS: Final = (
    *("minPartitions", "groupIdPrefix", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("kafkaConsumer.", "fetchOffset.", "fetchoffset."),
)
# Settings that are also options. On the command line, the setting and the option replace a file's option.
_SAME: Final = {
    "bootstrap.servers": "bootstrap_servers",
    "metadata.broker.list": "bootstrap_servers",
    "schema.registry.url": "schema_registry",
    "spark.master": "master",
}
# Rules of other options depend on these options. If one is a reference, rules are checked when it is read.
_DECIDING: Final = ("to", "topic_pattern")


class RunOptions(msgspec.Struct, frozen=True):
    """The options that control the output of the command; the pipeline does not receive these options."""

    summary_json: Annotated[
        str | None,
        Option(
            'Write the summary as JSON: to FILE after each batch, or to stdout at the end if FILE is "-".',
            metavar="FILE",
            path="writes",
        ),
    ] = None
    quiet: Annotated[
        bool, Option("Print neither a line for each batch nor a line each minute.", flags="-q --quiet")
    ] = False


_OF_PIPELINE: Final = fields_of(pipeline.PipelineOptions)
FIELDS: Final = (*_OF_PIPELINE, *fields_of(SettingFiles), *fields_of(RunOptions))
"""The options that a command line or an options file may contain."""


class ChosenOptions(msgspec.Struct, frozen=True):
    """The options of a command line, and the options in the options file ``path``.

    ``line`` and ``file`` are the options of the command line and of the file, as dictionaries by field name.
    An option on the command line replaces the same option in the file. Each setting on the command line
    replaces the setting with the same name in the file.
    """

    line: Mapping[str, Any]
    file: Mapping[str, Any]
    path: str
    pairs: tuple[str, ...]

    @classmethod
    def of(cls, ctx: click.Context) -> ChosenOptions:
        """Return the options of a command line and of its options file. Raises `BadUsage`."""
        path, pairs = ctx.params["options_file"], ctx.params["options"]
        removed = {name: removed_text(name, name) for name in OPTIONS}
        file = read_options(path, FIELDS, removed) if path else {}
        for setting in settings_of_pairs((pair, "-X") for pair in pairs):
            file.pop(_SAME.get(setting, ""), None)
        return cls(passed_options(ctx, FIELDS), file, path or "", pairs)

    def values(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of all options that are set, except the settings."""
        return resolve({**self.file, **self.line}, FIELDS, self.path, environment)

    def settings(self, values: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
        """Return the settings of all sources, including the options file and the command line."""
        of_file = read_settings(self.file.get(SETTINGS, {}), self.path, environment)
        if "bootstrap_servers" in self.file and "bootstrap_servers" not in self.line:
            of_file["bootstrap.servers"] = values["bootstrap_servers"]
        return load_settings(
            values.get("config"),
            environment,
            self.pairs,
            self.line.get("bootstrap_servers"),
            values.get("profile"),
            file=(self.path, of_file),
        )

    def pipeline_options(self, values: Mapping[str, Any], settings: Settings) -> pipeline.PipelineOptions:
        """Return the options with which the pipeline runs. Raises `BadUsage` for wrong options."""
        effective = settings.split(REGISTRY)[0].effective
        source = _starting(effective, ("kafka.", *_SOURCE_SETTINGS))
        spark = _starting(effective, ("spark.",))
        rest = {name: value for name, value in effective.items() if name not in source and name not in spark}
        registry = registry_settings(values.get("schema_registry"), settings.effective)
        servers = settings.bootstrap_servers
        try:
            kafka = {**pipeline.to_java_settings(rest), **source}
            return _checked(values, servers, kafka_options=kafka, conf=spark, schema_registry=registry)
        except ValueError as error:
            raise BadUsage(settings.redact(self._place(str(error)))) from None

    def to_toml(self) -> str:
        """Return an options file with these options; raise `BadUsage` for a wrong option or for a secret."""
        settings: Written = {
            **self.file.get(SETTINGS, {}),
            **settings_of_pairs((pair, "-X") for pair in self.pairs),
        }
        options = {**self.file, **self.line, SETTINGS: settings}
        text = to_toml(options, FIELDS)
        if not any(isinstance(options.get(name), Reference) for name in _DECIDING):
            try:
                _check(_without_references(options), _without_references(settings))
            except ValueError as error:
                raise BadUsage(self._place(str(error))) from None
        return text

    def _place(self, error: str) -> str:
        """Return the text of an error; for a wrong option of the options file, the text names the file."""
        name = re.match(r"\w*", error)
        is_of_file = name is not None and name[0] in self.file.keys() - self.line.keys()
        return f"{self.path}: {error}" if is_of_file else error


def _checked(values: Mapping[str, Any], servers: str, **own: Any) -> pipeline.PipelineOptions:
    found = struct_values(_OF_PIPELINE, values)
    return pipeline.PipelineOptions(**{**found, "bootstrap_servers": servers, **own})


def _starting(settings: Mapping[str, str], prefixes: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name.startswith(prefixes)}


def _check(options: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Raise `ValueError` for errors that references and other sources of settings cannot correct."""
    source, spark = _starting(settings, ("kafka.",)), _starting(settings, ("spark.",))
    _checked({"out": "-", **options}, "-", kafka_options=source, conf=spark)


def _without_references(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not isinstance(value, Reference)}
