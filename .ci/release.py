"""The steps of `make release`: the checks that take too long for each change.

    python .ci/release.py [STEP...] [--minutes N] [--examples N] [--seed N] [--list]

Run the named steps, or all of them, whether or not an earlier one fails. Print what each step does, and
at the end a table of outcomes and times. A step whose Python is not on this machine is "not run", which
is not "passed". Exit with status 1 if a step failed. Results and logs are in `build/release`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
CORPUS = ROOT / "tests" / "fuzz" / "corpus.zip"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FREE_THREADED = "3.14t"
# Where pyenv and uv install Pythons that are not on PATH.
INSTALLED = (".pyenv/versions/{}.*/bin/python{}", ".local/share/uv/python/cpython-{}.*/bin/python{}")
# As in the Makefile: all packages but Spark, and the tests that need neither a broker nor Spark.
EXTRAS = "cli,protobuf,protocol,metrics,report,testing,tracing"
# The groups of packages that tests and mutants need, and the first pip that knows groups.
TEST_GROUP = ("--group", f"{ROOT / 'pyproject.toml'}:test")
MUTATION_GROUP = ("--group", f"{ROOT / 'pyproject.toml'}:mutation")
PIP = "pip>=25.1"
# What each extra of users is for, in a line of Python; "" is the package without an extra.
TRIES = {
    "": "from cloudevents_kafka import *;from_record(to_record(Event(id='1', source='/', type='t', data=1)))",
    "cli": "from cloudevents_kafka.cli.app import app; app(['doctor', 'consume'])",
    "protobuf": "from cloudevents_kafka import *; e = Event(id='1', source='/', type='t', data=1);"
    "assert from_record(to_record(e, mode='structured', format='protobuf')).id == '1'",
    "protocol": "import cramjam, google_crc32c, kazoo, cloudevents_kafka.protocol.client",
    "report": "import pygal",
    "spark": "from pyspark.sql import SparkSession; from cloudevents_kafka.spark import configure_session;"
    "configure_session(SparkSession.builder, formats=['delta', 'iceberg']);"
    "import cloudevents_kafka.spark.pipeline",
    "testing": "from cloudevents_kafka.testing import LocalBroker; import jgo",
    "readers": "import deltalake, duckdb, polars, pyiceberg.table",
    "metrics": "from cloudevents_kafka.clients.observing.prometheus import PrometheusObserver as P; P()",
    "tracing": "from cloudevents_kafka.clients.observing.opentelemetry import OpenTelemetryObserver; "
    "OpenTelemetryObserver()",
}
# Tools of tests that need newer releases of protobuf than the oldest of the extra; for Spark Connect only.
NEWER = ("grpcio", "googleapis")
# Frameworks with the SDK, most of which need its version 1.
NEIGHBOURS = ("functions-framework", "dapr", "dapr-ext-grpc", "kserve")
# The tests that need no version 2 of the SDK.
SDK_1 = ("tests/sdk/test_installed.py", "tests/sdk/test_v1.py", "tests/sdk/test_doors.py")
# Programs of Chromium, by their names on PATH.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The tests of pages and examples.
PAGES = (
    "tests/cli/demo",
    "tests/docs",
    "tests/spark/pipeline/test_docstrings.py",
    "tests/spark/pipeline/test_examples.py",
    "tests/test_docstrings.py",
    "tests/test_page_commands.py",
    "tests/test_readme.py",
    "tests/test_tutorial.py",
)
REGISTRY = "tests/real_registry"
# Most of these tests wait for Spark, for a broker or for a time-out of theirs.
WORKERS = ("-n=3", "--dist=loadgroup", "--no-loadscope-reorder", "--one-broker", "--pipeline-groups=2")
BUSY = 4
ALONE = "not broker and not spark and not legacy and not peer and not release"


class NotHereError(Exception):
    """What a step needs is not on this machine."""


@dataclass(frozen=True)
class Step:
    """A step: its name on the command line, what it does, and the function that does it."""

    name: str
    title: str
    action: Callable[[], None]


def main(arguments: list[str]) -> int:
    """Run the steps that the arguments name, or all, and return the exit status."""
    parser = argparse.ArgumentParser(prog=".ci/release.py", description="Run the checks before a release.")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="the steps to run (default: all)")
    parser.add_argument("--minutes", type=float, default=15, help="of fuzzing, for all targets (%(default)s)")
    parser.add_argument("--examples", type=float, default=20, help="times those of make test (%(default)s)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="of all that is random")
    parser.add_argument("--list", action="store_true", help="print the steps and exit")
    options = parser.parse_intermixed_args(arguments)
    steps = {step.name: step for step in all_steps(options.minutes, options.examples, options.seed)}
    if unknown := sorted(set(options.steps) - steps.keys()):
        parser.error(f"STEP must be one of {', '.join(steps)}, got {', '.join(unknown)}")
    chosen = [steps[name] for name in options.steps or steps]
    if options.list:
        print(*(f"{step.name:12} {step.title}" for step in chosen), sep="\n")
        return 0
    return run(chosen)


def all_steps(minutes: float, examples: float, seed: int) -> Iterator[Step]:
    """Yield all steps, in the order in which they run."""
    yield Step("tests", "the tests marked release that none of the next three steps has", other_tests)
    title = "the tests of Spark marked release: each format of table, series of kills, matrices of settings"
    yield Step("tables", title, spark_tests)
    title = "the tests marked long: histories, kills and upkeep of tables, a million rows, a thousand topics"
    yield Step("histories", title, long_tests)
    yield Step("pages", "the pages, examples and the demo that make test has no time for", page_tests)
    yield Step("old-brokers", "the tests marked legacy: old brokers, ZooKeeper, Java's clients", old_brokers)
    title = f"make test next to {BUSY} busy processes, in an order by chance within groups, --seed {seed}"
    yield Step("busy", title, partial(busy, seed))
    yield Step("check", "make check in a new tree, whose environment has no Spark", light_tests)
    title = f"kills while events are forwarded (200) and pipelines land records (50), --seed {seed}"
    yield Step("soak", title, partial(soak, seed))
    title = f"properties with {examples:g} times as many examples, --seed {seed}"
    yield Step("properties", title, partial(properties, examples, seed))
    title = f"each fuzz target, together {minutes:g} minutes, --seed {seed}"
    yield Step("fuzz", title, partial(fuzz, minutes, seed))
    title = f"mutants of modules that decide, and of 300 places by --seed {seed}: tests notice them"
    yield Step("mutants", title, partial(mutants, seed))
    yield Step("newest", "Spark's functions on the newest PySpark", partial(make, "test-newest"))
    title = "Spark's tests and the demo on the newest PySpark that has Kafka, Delta and Iceberg"
    yield Step("later", title, partial(make, "test-later"))
    yield Step("peers", "events exchanged with the SDKs for other languages", partial(make, "peers"))
    yield Step("registry", "framed data with a real schema registry, which needs Java 21 or later", registry)
    title = "the official SDK's own tests of its Kafka functions; CLOUDEVENTS_SDK is a checkout of it"
    yield Step("sdk", title, sdk)
    yield Step("docs", "the documentation site, built strictly", partial(make, "docs"))
    yield Step("site", "the site in a browser: widths of a phone and a desktop, search, links", site)
    yield Step("package", "the sdist and the wheel: built, inspected, with a bill of materials", package)
    yield Step("extras", "the wheel with each extra alone and with all, oldest and newest PySpark", extras)
    title = "the wheel with the oldest releases of its dependencies: the tests as on each Python"
    yield Step("oldest", title, oldest)
    yield Step("sdk-1", "the functions of the SDK's version 1 with its oldest release", oldest_sdk)
    title = f"the wheel next to {', '.join(NEIGHBOURS)}: pip finds releases that all of them accept"
    yield Step("neighbours", title, neighbours)
    for version in PYTHONS:
        title = f"the wheel on Python {version}: the tests that need no broker and no Spark"
        yield Step(f"wheel-{version}", title, partial(wheel, version))
    title = f"threads that share readers and caches on Python {FREE_THREADED}, without the global lock"
    yield Step("threads", title, threads)


def run(steps: list[Step]) -> int:
    """Run the steps, print a table of their outcomes, and return the exit status."""
    rows = []
    for step in steps:
        print(f"\n=== {step.name}: {step.title}", flush=True)
        start = time.monotonic()
        outcome = outcome_of(step)
        rows.append((step.name, f"{time.monotonic() - start:.0f} s", outcome))
    print("\n" + "\n".join(f"{name:12} {seconds:>7}  {outcome}" for name, seconds, outcome in rows))
    return int(any(outcome.startswith("FAILED") for *_, outcome in rows))


def outcome_of(step: Step) -> str:
    """Run a step and return its outcome for the table."""
    try:
        step.action()
    except NotHereError as error:
        return f"not run: {error}"
    except subprocess.CalledProcessError as error:
        return f"FAILED: exit status {error.returncode}"
    except OSError as error:
        return f"FAILED: {error}"
    return "passed"


def command(*argv: str | Path, cwd: Path = ROOT, **variables: str) -> None:
    """Run a program; raise `CalledProcessError` if it fails."""
    print("$", *(f"{name}={value}" for name, value in variables.items()), *argv, flush=True)
    subprocess.run(argv, cwd=cwd, env=os.environ | variables, check=True)


def make(target: str) -> None:
    """Run a target of the Makefile."""
    command("make", "--no-print-directory", target)


def pytest(*options: str, **variables: str) -> None:
    """Run pytest in this environment; its results are an XML file in `BUILD`."""
    name = "properties" if "EXAMPLES" in variables else "tests"
    command(sys.executable, "-m", "pytest", *options, f"--junitxml={BUILD / name}.xml", **variables)


def other_tests() -> None:
    """Run the tests marked `release`, but for those of Spark and of pages."""
    make("ready")
    marked("release and not long", "tests", leave_out=("tests/spark", REGISTRY, *PAGES))


def spark_tests() -> None:
    """Run the tests of Spark that are marked `release`."""
    make("ready")
    marked("release and not long", "tests/spark", leave_out=PAGES)


def long_tests() -> None:
    """Run the tests marked `long`, which take hours."""
    make("ready")
    marked("long", "tests")


def page_tests() -> None:
    """Run the tests of pages and examples that are marked `release`."""
    make("ready")
    marked("release", *PAGES)


def old_brokers() -> None:
    """Run the tests marked `legacy`."""
    make("legacy")
    marked("legacy", "tests")


def marked(marker: str, *paths: str, leave_out: tuple[str, ...] = ()) -> None:
    """Run the tests in paths that have a marker."""
    pytest("-m", marker, *WORKERS, "--durations", "10", *(f"--ignore={path}" for path in leave_out), *paths)


def busy(seed: int) -> None:
    """Run the tests where all cores are taken, so that one that measures the clock or needs another fails."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    try:
        command("make", "--no-print-directory", "test", f"PYTEST_FLAGS=--shuffle {seed}")
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def light_tests() -> None:
    """Run `make check` as in a new clone, with all tests: types are checked without PySpark, too."""
    shutil.rmtree(BUILD / "check", ignore_errors=True)
    copy(BUILD / "check", tracked())
    command("make", "--no-print-directory", "check", "TOOL_TESTS=", cwd=BUILD / "check")


def soak(seed: int) -> None:
    """Kill pipelines at random."""
    command("make", "--no-print-directory", "soak", f"SOAK_FLAGS=--seed {seed}")


def properties(examples: float, seed: int) -> None:
    """Run the property tests with other and more examples than `make test`."""
    chance = ["--hypothesis-profile=random", f"--hypothesis-seed={seed}", "--timeout=3600"]
    parallel = ["-n", "2", "--dist", "worksteal"]
    pytest("-m", f"hypothesis and {ALONE}", *chance, *parallel, EXAMPLES=f"{examples:g}")


def fuzz(minutes: float, seed: int) -> None:
    """Run each target for its part of the time; raise after the last one if one found a crash."""
    packages = beside("atheris", "atheris")
    path = os.pathsep.join(str(folder) for folder in (ROOT, ROOT / "spec-conformance", packages))
    with ZipFile(CORPUS) as archive:
        targets = sorted({name.partition("/")[0] for name in archive.namelist()})
    failures = []
    for target in targets:
        seconds = max(1, round(60 * minutes / len(targets)))
        options = [target, str(seconds), "--seed", str(seed), "--keep", str(BUILD / "fuzz")]
        try:
            command(sys.executable, "-m", "tests.fuzz", *options, PYTHONPATH=path)
        except subprocess.CalledProcessError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def mutants(seed: int) -> None:
    """Change the package in one place after another, and let its tests find each change."""
    packages = beside("mutation", *MUTATION_GROUP)
    command(sys.executable, ".ci/mutants.py", "--seed", str(seed), PYTHONPATH=str(packages))


def beside(name: str, *requirements: str) -> Path:
    """Return a folder of packages that are for one step, and not for this environment."""
    folder = BUILD / name
    if not folder.exists():
        command(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *requirements)
    return folder


def registry() -> None:
    """Run the tests that start a real schema registry, by a Java that is newer than Spark's."""
    program = [sys.executable, "-m", "tests.support.real_registry"]
    found = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        raise NotHereError(found.stderr.strip().rpartition("\n")[2])
    make("ready")
    marked("release", REGISTRY)


def sdk() -> None:
    """Run the SDK's own tests, which no package of it has, against the functions of the same names."""
    checkout = os.environ.get("CLOUDEVENTS_SDK")
    if not checkout:
        raise NotHereError("CLOUDEVENTS_SDK must be the path of a checkout of cloudevents/sdk-python")
    command(sys.executable, "-m", "tests.support.sdk_own_tests", checkout)


def site() -> None:
    """Build the site, write reports, and check both in a headless Chromium."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise NotHereError("Chromium is not on PATH; Debian: apt install chromium")
    make("docs")
    python = ROOT / ".venv-docs" / "bin" / "python"
    command(python, ".ci/site/check.py", "build/site", browser)
    reports = BUILD / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    command(sys.executable, "-m", "tests.support.sample_report", reports)
    command(python, ".ci/site/report.py", reports, browser)


def tools() -> Path:
    """Return the folder of the programs that only releases need."""
    folder = BUILD / "tools"
    if not (folder / "bin" / "twine").exists():
        command(sys.executable, "-m", "venv", "--clear", folder)
        command(folder / "bin" / "pip", "install", "--quiet", "cyclonedx-bom", "twine", "uv")
    return folder / "bin"


@cache
def built() -> Path:
    """Return the wheel of the tree as it is now, which is built once in each run of the steps."""
    shutil.rmtree(BUILD / "package" / "dist", ignore_errors=True)
    command(sys.executable, ".ci/distribution.py", BUILD / "package" / "dist")
    return next(BUILD.glob("package/dist/*.whl"))


def environment(name: str, *requirements: str | Path) -> Path:
    """Return the Python of a new environment with these packages and no others."""
    folder = BUILD / "environments" / name
    shutil.rmtree(folder, ignore_errors=True)
    command(tools() / "uv", "venv", "--quiet", "--python", find_python(PYTHONS[0]), folder)
    python = folder / "bin" / "python"
    command(tools() / "uv", "pip", "install", "--quiet", "--python", python, *requirements)
    return python


def package() -> None:
    """Build and inspect both files, check the licences, and write the bill of materials."""
    folder, wheel = BUILD / "package", built()
    command(tools() / "twine", "check", "--strict", *sorted((folder / "dist").iterdir()))
    python = environment("users", f"{wheel}[{','.join(filter(None, TRIES))}]")
    options = ["--output-reproducible", "--pyproject", "pyproject.toml", "-o", folder / "sbom.cdx.json"]
    command(tools() / "cyclonedx-py", "environment", python, *options)
    add_version(folder / "sbom.cdx.json", wheel.name.split("-")[1])
    # By the newest releases, as older ones name some licences otherwise.
    command(python, ".ci/distribution.py", "--licences")
    command("git", "diff", "--exit-code", "docs/licences.md")


def add_version(bom: Path, version: str) -> None:
    """Write the package's version to its bill of materials, as pyproject.toml does not have it."""
    content = json.loads(bom.read_text("utf-8"))
    content["metadata"]["component"]["version"] = version
    bom.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def extras() -> None:
    """Try the wheel with each extra alone, the spark extra also with its oldest PySpark, and with all."""
    wheel = built()
    for extra, code in TRIES.items():
        python = environment(extra or "plain", f"{wheel}[{extra}]" if extra else wheel)
        command(python, "-c", code, cwd=BUILD)
    oldest = environment(
        "spark-oldest", f"{wheel}[spark]", "pyspark==4.0.0", "pandas==2.2.*", "pyarrow==18.*"
    )
    command(oldest, "-c", TRIES["spark"], cwd=BUILD)
    python = environment("users", f"{wheel}[{','.join(filter(None, TRIES))}]")
    for code in TRIES.values():
        command(python, "-c", code, cwd=BUILD)


def oldest() -> None:
    """Run the tests on the wheel with the oldest release of each dependency that the package promises.

    The tests need version 2 of the SDK; the next step has version 1.
    """
    wheel, pins, sdk_2 = built(), BUILD / "oldest.txt", BUILD / "sdk-2.txt"
    sdk_2.write_text("cloudevents>=2.2\n")
    lowest = ["--quiet", "--resolution", "lowest-direct", "--python-version", PYTHONS[0], "-c", sdk_2]
    chosen = [part for extra in TRIES if extra not in {"", "spark", "readers"} for part in ("--extra", extra)]
    command(tools() / "uv", "pip", "compile", *lowest, *chosen, "pyproject.toml", "-o", pins)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    tests = [one for one in groups["test"] if not one.startswith(NEWER)]
    python = environment("oldest", wheel, "-r", pins, *tests)
    run_tests(python, BUILD / "oldest")


def oldest_sdk() -> None:
    """Run the tests of the SDK's version 1 on the wheel with its oldest release."""
    python = environment("sdk-1", built(), oldest_release("cloudevents"), "hypothesis", "pytest-timeout")
    tree = BUILD / "sdk-1"
    shutil.rmtree(tree, ignore_errors=True)
    copy(tree, [name for name in tracked() if not name.startswith("cloudevents_kafka/")])
    options = ["--noconftest", "-m", "release or not release"]
    command(python, "-m", "pytest", *options, *SDK_1, cwd=tree, PYTHONPATH="")


def oldest_release(name: str) -> str:
    """Return the requirement of the oldest release of a dependency that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (allowed,) = (one for one in project["dependencies"] if one.startswith(name))
    return allowed.partition(",")[0].replace(">=", "==")


def neighbours() -> None:
    """Let pip find releases of the wheel's dependencies that the newest frameworks with the SDK accept, too.

    Next to a wheel that shuts a framework out, pip would find an old release that does not need the SDK.
    """
    wheel, python = built(), BUILD / "environments" / "neighbours" / "bin" / "python"
    command(find_python(PYTHONS[0]), "-m", "venv", "--clear", python.parents[1])
    for name in NEIGHBOURS:
        newest = releases_by_pip(python, name)[name]
        found = releases_by_pip(python, wheel, f"{name}=={newest}")
        print(name, newest, "with cloudevents", found["cloudevents"], flush=True)


def releases_by_pip(python: Path, *wanted: str | Path) -> dict[str, str]:
    """Return the releases that pip finds for these packages and their dependencies, by name."""
    report = BUILD / "neighbours.json"
    command(python, "-m", "pip", "install", "--quiet", "--dry-run", "--report", report, *wanted)
    found = [one["metadata"] for one in json.loads(report.read_text())["install"]]
    return {one["name"]: one["version"] for one in found}


def wheel(version: str) -> None:
    """Build the wheel, and run the tests on it where the package's source is not."""
    python = find_python(version)
    folder = BUILD / f"python-{version}"
    shutil.rmtree(folder, ignore_errors=True)
    command(python, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    command(programs / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    (built,) = folder.glob("*.whl")
    command(programs / "python", "-m", "pip", "install", "--quiet", PIP)
    command(programs / "python", "-m", "pip", "install", "--quiet", f"{built}[{EXTRAS}]", *TEST_GROUP)
    run_tests(programs / "python", folder)


def threads() -> None:
    """Run the tests of threads on the wheel in a Python whose threads run at the same time."""
    wheel, folder = built(), BUILD / "threads"
    shutil.rmtree(folder, ignore_errors=True)
    command(find_python(FREE_THREADED), "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    command(python, "-m", "pip", "install", "--quiet", f"{wheel}[protobuf]", "hypothesis", "pytest-timeout")
    copy(folder / "tree", [name for name in tracked() if not name.startswith("cloudevents_kafka/")])
    tests = ["tests/test_threads.py", "tests/test_shared_caches.py", "tests/formats/test_json_reader.py"]
    options = ["--noconftest", "-m", "release or not release"]
    command(python, "-m", "pytest", *options, *tests, cwd=folder / "tree", PYTHONPATH="")


def run_tests(python: Path, folder: Path) -> None:
    """Run the tests that need neither a broker nor Spark with an installed package, in a copy of the tree."""
    shutil.rmtree(folder / "tree", ignore_errors=True)
    copy(folder / "tree", [name for name in tracked() if not name.startswith("cloudevents_kafka/")])
    options = ["-m", ALONE, "-n", "4", "--dist", "worksteal", f"--junitxml={folder}.xml"]
    options.append("--ignore=tests/test_mutants.py")  # it reads the package's source
    command(python, "-m", "pytest", *options, cwd=folder / "tree", PYTHONPATH="", EXAMPLES="0.2")


def tracked() -> list[str]:
    """Return the names of the files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name]


def copy(tree: Path, names: list[str]) -> None:
    """Copy files of the repository."""
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)


def find_python(version: str) -> Path:
    """Return a Python of a version that can create environments; raise `NotHereError` if none is found."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2] + sys.abiflags)"
    on_path = shutil.which(f"python{version}")
    candidates = [Path(on_path)] if on_path else []
    candidates += [
        path for pattern in INSTALLED for path in Path.home().glob(pattern.format(version, version))
    ]
    for candidate in candidates:
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return candidate
    message = f"Python {version} with venv is neither on PATH nor installed by pyenv or uv"
    raise NotHereError(message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
