"""README, the home page, the tutorial and messages say in the same words how to install the package."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from cloudevents_kafka.primitives.installing import pip_install
from tests.support.cases import each

ROOT = Path(__file__).parents[2]
_spec = spec_from_file_location("install_pages", ROOT / ".ci" / "install.py")
assert _spec is not None
assert _spec.loader is not None
install = module_from_spec(_spec)
_spec.loader.exec_module(install)
# From its source, and a wheel or a checkout, which are files of the user.
ALLOWED = re.compile(r"cloudevents-kafka\[\S+\] @ git\+\S+|\./cloudevents[-_]kafka\S*")
EXTRAS = {
    "pandas": "spark",
    "prometheus_client": "metrics",
    "opentelemetry": "tracing",
    "deltalake": "readers",
    "duckdb": "readers",
}


def test_the_pages_are_of_today():
    """They have what the script writes."""
    assert install.main(["--check"]) == 0


@each("page", install.PAGES)
def test_a_release_changes_each_page(page):
    """After it each page has one line of pip, and no other source than the index."""
    text = install.written(page, install.PAGES[page], source="")
    assert text.count("pip install") == 1
    assert "git+" not in text


def test_pages_name_the_packages_that_they_import():
    """A page whose code imports another package has the command of pip for it, or the name of the extra."""
    # FastAPI brings pydantic.
    own = {
        "pydantic",
        "cloudevents",
        "cloudevents_kafka",
        "confluent_kafka",
        "fastavro",
        "msgspec",
        "pyspark",
    }
    missing = []
    for page in (ROOT / "docs").rglob("*.md"):
        text = page.read_text("utf-8")
        code = "\n".join(re.findall(r"```python[^\n]*\n(.*?)```", text, re.DOTALL))
        files = re.findall(r'title="(\w+)\.py"', text)
        found = {*re.findall(r"^ *(?:from|import) (\w+)", code, re.MULTILINE)} - {*files, *own}
        for name in found - sys.stdlib_module_names:
            ways = [rf"pip install [^`]*\b{name}\b"]
            if extra := EXTRAS.get(name):
                ways += [rf"`{extra}`", rf"\[(?:\w+,)*{extra}[,\]]"]
            if not re.search("|".join(ways), text):
                missing.append(f"{page.name}: {name}")
    assert missing == []


def test_no_name_is_installed_from_the_index_before_the_release():
    """Who registers the name there first would get these installs: each text has the source."""
    assert pip_install("cli") == (
        'pip install "cloudevents-kafka[cli] @ git+https://github.com/cloudevents-kafka/cloudevents-kafka"'
    )
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in files.stdout.splitlines() if name.endswith((".py", ".md", ".toml", ".yml"))]
    found = []
    for name in names or [str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")]:
        path = ROOT / name
        if (
            path == Path(__file__)
            or name == "cloudevents_kafka/primitives/installing.py"
            or not path.is_file()
        ):
            continue
        lines = path.read_text("utf-8").splitlines()
        wrong = (
            line for line in lines if re.search(r"pip install\b.*cloudevents-kafka", ALLOWED.sub("", line))
        )
        found += [f"{name}: {line.strip()}" for line in wrong]
    assert found == []
