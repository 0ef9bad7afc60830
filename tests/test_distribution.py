"""The sdist and the wheel have what users need and nothing else, and the wheel works by itself."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

import cloudevents_kafka
from tests.support.cases import each

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
pytestmark = [pytest.mark.xdist_group("distribution")]


@pytest.fixture(scope="module")
def distribution() -> ModuleType:
    spec = importlib.util.spec_from_file_location("distribution", ROOT / ".ci" / "distribution.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def built(distribution, tmp_path_factory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    if not (ROOT / "cloudevents_kafka").is_dir():
        pytest.skip("the tests run on an installed wheel, without the package's source")
    return distribution.build(tmp_path_factory.mktemp("dist"))


@pytest.mark.release  # the step package inspects both files
def test_both_are_complete(distribution, built):
    """Inspection finds no problem; the changelog is in the sdist."""
    sdist, wheel = distribution.sdist_files(built[0]), distribution.wheel_files(built[1])
    assert list(distribution.problems(sdist, wheel)) == []
    assert sdist["CHANGELOG.md"] == (ROOT / "CHANGELOG.md").read_bytes()


@pytest.mark.release
def test_problems_are_found(distribution, built):
    """A missing file, a file of a machine, a stray one and other content are each reported."""
    sdist, wheel = distribution.sdist_files(built[0]), distribution.wheel_files(built[1])
    del sdist["CHANGELOG.md"]
    wheel["tests/event/test_event.py"] = b""
    wheel["cloudevents_kafka/settings.key"] = b"in /home/me/keys"
    wheel["cloudevents_kafka/event/_event.py"] += b"\n"
    metadata = next(name for name in wheel if name.endswith("METADATA"))
    wheel[metadata] = wheel[metadata].replace(b"Project-URL: Changelog", b"X: ")
    wheel[metadata] = wheel[metadata].replace(
        b"Provides-Extra: cli", b"Provides-Extra: cli\nProvides-Extra: test"
    )
    wheel[metadata] += b'\n[design](docs/design.md) <img src="docs/assets/flow.svg"> [here](#install)\n'
    assert list(distribution.problems(sdist, wheel)) == [
        "sdist: CHANGELOG.md is missing",
        "wheel: cloudevents_kafka/settings.key must not be published",
        "wheel: tests/event/test_event.py is outside of the package",
        "wheel: cloudevents_kafka/settings.key has the path of a machine, /home/me/",
        "wheel: cloudevents_kafka/event/_event.py is not as in the sdist",
        "metadata: the project URL Changelog is missing",
        "metadata: the description's link docs/design.md must be absolute",
        "metadata: the description's link docs/assets/flow.svg must be absolute",
        "metadata: extras must be for users: test",
    ]


def test_the_wheel_works(built, tmp_path):
    """The content of the wheel, without the source, converts a record, runs its command and its clauses."""
    zipfile.ZipFile(built[1]).extractall(tmp_path)
    code = (
        "import cloudevents_kafka as c; e = c.Event(id='1', source='/', type='t', data=1);"
        "assert c.from_record(c.to_record(e)).id == '1'; print(c.__file__, c.__version__)"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for argv, expected in (
        (["-c", code], f"{tmp_path}/cloudevents_kafka/__init__.py {cloudevents_kafka.__version__}"),
        (["-m", "cloudevents_kafka", "--version"], cloudevents_kafka.__version__),
        (["-m", "cloudevents_kafka", "protocol", "grammar", "MetadataRequest", "0"], "TopicName => string"),
    ):
        done = subprocess.run(
            [sys.executable, *argv], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        assert expected in done.stdout


@pytest.mark.release
def test_the_sdist_installs(built, tmp_path):
    """The sdist is built and installed by pip; what it installs has the files of the wheel."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", tmp_path]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, built[0]], check=True)
    with zipfile.ZipFile(built[1]) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if name.startswith("cloudevents_kafka/")}
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_the_version_is_in_one_place():
    """`__version__` is the version of the metadata, which is made from it."""
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", cloudevents_kafka.__version__)
    assert version("cloudevents-kafka") == cloudevents_kafka.__version__
    assert PROJECT["dynamic"] == ["version"]
    assert f"({cloudevents_kafka.__version__})" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_each_dependency_has_its_licence(distribution):
    """The page of licences has a line for each dependency of users, in the order of the extras."""
    requirements = [*PROJECT["dependencies"]]
    for extra in distribution.EXTRAS:
        requirements += PROJECT["optional-dependencies"][extra]
    names = {re.split(r"[\[<>=!~ ;]", text)[0] for text in requirements}
    page = distribution.LICENCES.read_text("utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| (.+) \|$", page, re.MULTILINE))
    assert rows.keys() - {"package"} == names
    assert "not named" not in rows.values()


REQUIREMENTS = [
    requirement
    for group in (
        PROJECT["dependencies"],
        *PROJECT["optional-dependencies"].values(),
        *PYPROJECT["dependency-groups"].values(),
    )
    for requirement in group
]


@each("requirement", REQUIREMENTS)
def test_each_requirement_has_a_lower_bound(requirement):
    """The oldest release that is promised, which make release installs, is named."""
    assert ">=" in requirement


def test_supported_pythons_are_the_same_everywhere(distribution):
    """Classifiers, the release's steps and the workflow name the same releases of Python."""
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    release = (ROOT / ".ci" / "release.py").read_text("utf-8")
    tested = re.findall(
        r'"(3\.\d+)"', next(line for line in release.splitlines() if line.startswith("PYTHONS"))
    )
    assert classified == [one for one in tested if one in classified]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    if (ROOT / ".github").is_dir():
        workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
        assert re.findall(r'"(3\.\d+)"', re.findall(r"python: \[(.*)\]", workflow)[0]) == tested


@each("name", ["checks.yml", "nightly.yml", "old-brokers.yml", "release.yml"])
def test_workflows_run_what_exists(name):
    """Each step of a workflow is a target of the Makefile or a step of the release; no registry is named."""
    if not (ROOT / ".github").is_dir():
        pytest.skip("an sdist has no workflows")
    workflow = (ROOT / ".github" / "workflows" / name).read_text("utf-8")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    used = re.findall(r"run: make ([\w-]+)", workflow)
    assert used
    assert set(used) <= set(targets)
    listed = subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", "--list"], capture_output=True, text=True, check=True
    )
    steps = {line.split()[0] for line in listed.stdout.splitlines()}
    named = re.findall(r'RELEASE_FLAGS="([^"$]+)"', workflow) + re.findall(r"step: \[(.+)\]", workflow)
    for names in named:
        assert set(re.findall(r"[\w.-]+", names)) <= steps
    pins = re.findall(r"uses: .+@(.+)", workflow)
    assert all(re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin) for pin in pins)
    assert not re.search(r"pypi\.org|https?://", workflow)
