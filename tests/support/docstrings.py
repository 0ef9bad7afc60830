"""The docstrings of the public names of the package, and how their examples run.

They are read as text, as the reference reads them, so that constants and types have theirs, too. In an
example ``consumer`` is a client that reads two events from the topic ``orders``, ``producer`` is a client
that sends, both fakes of confluent-kafka's, and ``spark`` is a session. ``localhost:9092`` is the address of
a broker that has the topic ``orders`` with the same events, ``localhost:9094`` that of one that asks for a
login, ``localhost`` with the port 9070 that of a Kafka 0.7, ``localhost:2181`` that of a ZooKeeper without
nodes, ``sc://localhost:15002`` that of a server of Spark Connect, and ``lake/`` is a folder. A method's
example has the name of its class.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cloudevents_kafka
from cloudevents_kafka import Event, EventProducer
from cloudevents_kafka.testing import FakeConsumer, FakeProducer
from tests.support.wire_broker import WireBroker, WireBroker07

ROOT = Path(cloudevents_kafka.__file__).parents[1]
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
EVENTS = [
    Event(id=number, source="/shop", type="order.placed", data={"total": total})
    for number, total in (("1", "9.50"), ("2", "12.00"))
]
KEY = "customer-4"
NEEDS = {
    "Connect": ("sc://localhost:15002",),
    "ZooKeeper": ("localhost:2181",),
    "a Spark of its own": ("local_session(", "optimize_tables(", "vacuum_tables("),
    "broker": ("localhost:9092", "LocalBroker("),
}
"""What an example needs, by the text in it."""
THERE = {
    "connect": "sc://localhost:15002",
    "zookeeper": "localhost:2181",
    "servers": "localhost:9092",
    "login": "localhost:9094",
    "v07": '"localhost", 9070',
    "topic": '"orders"',
    "folder": "lake/",
}
"""What examples call the servers, the topic and the folder of a test."""


class Docstring(NamedTuple):
    """A docstring, and where it is: ``module`` and ``name`` are those of its definition."""

    module: str
    name: str
    text: str
    line: int

    @property
    def examples(self) -> list[doctest.Example]:
        return doctest.DocTestParser().get_examples(self.text)

    @property
    def code(self) -> str:
        return "".join(example.source for example in self.examples)

    @property
    def needs(self) -> str:
        """What it needs; an empty text if it needs nothing."""
        part = self.text.partition("Examples:")[2]
        return next((need for need, words in NEEDS.items() if any(word in part for word in words)), "")

    @property
    def of_spark(self) -> bool:
        return self.module.startswith("cloudevents_kafka.spark")

    @property
    def owner(self) -> str | None:
        """The class of a method."""
        return self.name.rpartition(".")[0] or None


@cache
def public() -> dict[str, Docstring]:
    """Return the docstrings of all that the reference shows, by the name under which users import it."""
    found = {}
    pages = "\n".join(text_at(page) for page in sorted(REFERENCE.glob("*.md")))
    for shown in re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE):
        parent, _, name = shown.rpartition(".")
        members = [(shown, each) for each in names(shown)] if is_module(shown) else [(parent, name)]
        found |= {f"{module}.{each}": docstring(module, each) for module, each in members}
    return {name: each for name, each in found.items() if not is_module(name)}


@cache
def with_examples() -> list[Docstring]:
    """Return the docstrings with examples, each once: of public names, and of methods of public classes."""
    found = {(each.module, each.name): each for each in public().values()}
    for each in list(found.values()):
        found |= {(method.module, method.name): method for method in methods(each)}
    return [each for each in found.values() if each.examples]


def path_of(module: str) -> Path:
    """Return the file of a module or package, which exists if the module does."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def is_module(name: str) -> bool:
    return path_of(name).exists()


def text_at(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def tree(module: str) -> tuple[ast.Module, bool]:
    """Return the syntax tree of a module, and whether it is a package."""
    path = path_of(module)
    return ast.parse(text_at(path)), path.name == "__init__.py"


def statements(node: Any) -> Iterator[tuple[ast.stmt, ast.stmt | None]]:
    """Yield the statements of a module or class, also those for type checkers, each with the next one."""
    for statement, after in pairwise([*node.body, None]):
        if isinstance(statement, ast.If):
            yield from statements(statement)
        yield statement, after


def names(module: str) -> list[str]:
    """Return ``__all__`` of a module, or else the public names that it defines."""
    defined = []
    for node, after in statements(tree(module)[0]):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed: list[str] = ast.literal_eval(node.value)
            return listed
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.append(node.name)
        elif text_of(after):
            defined.append(assigned(node))
    return [name for name in defined if name and not name.startswith("_")]


def assigned(node: ast.stmt) -> str:
    """Return the name that a statement assigns, or an empty text."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def text_of(node: ast.stmt | None) -> str:
    """Return the text of a statement that is only a text."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def docstring(module: str, name: str) -> Docstring:
    """Return the docstring of a name where it is defined; without one its text is empty."""
    body, package = tree(module)
    found = Docstring(module, name, "", 0)
    for node, after in statements(body):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name and not is_module(f"{module}.{name}"):
                    folder = module.split(".")[: len(module.split(".")) + package - node.level]
                    return docstring(
                        ".".join(filter(None, (*folder * bool(node.level), node.module))), alias.name
                    )
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            found = Docstring(module, name, ast.get_docstring(node) or found.text, node.lineno)
        elif assigned(node) == name:
            found = Docstring(module, name, text_of(after), node.lineno)
    return found


def methods(owner: Docstring) -> Iterator[Docstring]:
    """Yield the docstrings of the public methods of a class."""
    for node, _ in statements(tree(owner.module)[0]):
        if isinstance(node, ast.ClassDef) and node.name == owner.name:
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    text = ast.get_docstring(method) or ""
                    if not method.name.startswith("_"):
                        yield Docstring(owner.module, f"{owner.name}.{method.name}", text, method.lineno)


def run(doc: Docstring, **names_and_texts: Any) -> None:
    """Run the examples of a docstring, and fail with all that differs; see `THERE` for the texts."""
    text = doc.text
    for name, there in THERE.items():
        if name in names_and_texts:
            text = text.replace(there, names_and_texts.pop(name))
    globs = {**names_and_texts, "__name__": "__main__"}
    if doc.owner:
        globs[doc.owner] = getattr(importlib.import_module(doc.module), doc.owner)
    test = doctest.DocTestParser().get_doctest(text, globs, doc.name, doc.module, doc.line)
    output: list[str] = []
    failed = (
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=output.append).failed
    )
    assert not failed, "".join(output)


@contextmanager
def brokers(doc: Docstring) -> Iterator[dict[str, str]]:
    """Run the brokers in this process whose addresses an example has; yield what they are called."""
    with ExitStack() as running:
        found = {}
        if THERE["login"] in doc.text:
            found["login"] = running.enter_context(WireBroker(users={"shop": "secret"})).bootstrap_servers
        if THERE["v07"] in doc.text:
            found["v07"] = f'"127.0.0.1", {running.enter_context(WireBroker07()).port}'
        yield found


def clients() -> dict[str, Any]:
    """Return the fakes that examples have."""
    fake = FakeProducer()
    send(fake, "orders")
    consumer = FakeConsumer(fake.log, auto_commit=False)
    consumer.subscribe(["orders"])
    return {"consumer": consumer, "producer": FakeProducer()}


def send(client: Any, topic: str) -> None:
    """Send the events by a client to a topic."""
    with EventProducer(client, topic=topic) as producer:
        for event in EVENTS:
            producer.send(event, key=KEY)
