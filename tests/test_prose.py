"""The lint step for prose finds what CONTRIBUTING.md asks writers to avoid."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORDS = tomllib.loads((ROOT / ".ci" / "prose.toml").read_text(encoding="utf-8"))["word"]
WORD = "t" + "ell"  # in two parts, as this file is checked too


def findings(folder: Path, name: str, text: str) -> list[str]:
    """Return the lines that the step prints for one file."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    argv = [sys.executable, str(ROOT / ".ci" / "prose.py"), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.stderr
    assert done.returncode == bool(done.stdout)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "text",
    [
        f'"""{WORD} it."""\n',
        f"x = 1  # {WORD} it\n",
        f'raise ValueError("a {WORD}" f" of {{1}}")\n',
        f'x = f"a {{1}} {WORD} it"\n',
    ],
    ids=["docstring", "comment", "message", "f-string"],
)
def test_a_banned_word_is_found_wherever_people_read(tmp_path: Path, text: str) -> None:
    """Docstrings, comments and messages are checked, each finding with its line."""
    (finding,) = findings(tmp_path, "module.py", "\n\n" + text)
    assert finding.startswith("module.py:3: ")


def test_code_is_not_prose(tmp_path: Path) -> None:
    """Names and data without spaces are left alone."""
    assert not findings(tmp_path, "module.py", f'{WORD} = {{"{WORD}": 1}}\nfile.{WORD}()\n')


def test_each_word_can_be_found() -> None:
    """The list has words in it, each with what to write instead."""
    assert all(word["pattern"] and word["write"] for word in WORDS)
    assert len({word["pattern"] for word in WORDS}) == len(WORDS) > 10


@pytest.mark.parametrize(
    ("signature", "docstring", "found"),
    [
        ("def size() -> int", "The size.", True),
        pytest.param("def size() -> int", "The returned size.", True, marks=pytest.mark.release),
        ("def size() -> int", "Return the size.", False),
        pytest.param("def size() -> None", "Write the size.", False, marks=pytest.mark.release),
        pytest.param("def big() -> bool", "Return the size.", True, marks=pytest.mark.release),
        ("def big() -> bool", "Return whether it is big.", False),
        pytest.param("def _size() -> int", "The size.", False, marks=pytest.mark.release),
        pytest.param("async def size() -> int", "The size.", True, marks=pytest.mark.release),
    ],
)
def test_a_public_function_says_what_it_returns(
    tmp_path: Path, signature: str, docstring: str, *, found: bool
) -> None:
    """A docstring says "Return" where a value is returned, and "Return whether" for a bool."""
    text = f'{signature}:\n    """{docstring}"""\n'
    assert bool(findings(tmp_path, "cloudevents_kafka_module.py", text)) is found
    method = "class Size:\n" + "".join(f"    {line}\n" for line in text.splitlines())
    assert bool(findings(tmp_path, "cloudevents_kafka_module.py", method)) is found


def test_markdown_is_checked(tmp_path: Path) -> None:
    """Pages are checked as code is."""
    assert findings(tmp_path, "page.md", f"# Page\n\n{WORD} me.\n")[0].startswith("page.md:3: ")
