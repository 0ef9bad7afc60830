"""URLs are opened in one place, which sends credentials to the server of the URL only."""

from __future__ import annotations

import ast
import base64
import http.server
import io
import threading
from contextlib import ExitStack, suppress
from http.client import InvalidURL
from pathlib import Path
from urllib.error import HTTPError

import pytest

import cloudevents_kafka
from cloudevents_kafka.cli.commands.protocol._login import read_login
from cloudevents_kafka.cli.kafka.servers import ask_registry
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import CommandError
from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm._web import FetchFailed, Login, Repository
from cloudevents_kafka.primitives import web
from cloudevents_kafka.primitives.web import RefusedRedirect, TooLarge, open_url
from cloudevents_kafka.protocol import OAuthBearer

PACKAGE = Path(cloudevents_kafka.__file__).parent
ROOT = PACKAGE.parent
SECRETS = ("hunter2", base64.b64encode(b"me:hunter2").decode())
# Modules and names that open URLs, or connections for them.
OPENERS = {"urllib.request", "requests", "httpx", "urllib3", "aiohttp", "pycurl", "websockets", "ftplib"}
NAMES = {"urlopen", "urlretrieve", "build_opener", "install_opener", "OpenerDirector", "HTTPConnection"}
NAMES |= {"HTTPSConnection", "SchemaRegistryClient"}


class Server:
    """A server that records what is sent to it, and answers each request alike."""

    def __init__(self, status=200, body=b"[]", **headers):
        self.status, self.body, self.headers = status, body, headers
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.requestline, str(self.headers), content.decode()))
                self.send_response(outer.status)
                for name, value in {"Content-Length": str(len(outer.body)), **outer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # the client may read no more
                    self.wfile.write(outer.body)

            def do_POST(self):
                self.do_GET()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def text(self):
        return "\n".join("\n".join(request) for request in self.requests)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack):
    return lambda *arguments, **headers: stack.enter_context(Server(*arguments, **headers))


def registry(server):
    ask_registry(f"http://me:hunter2@{server.address}", 5)


def token(server):
    name = "sasl.oauthbearer."
    oidc = {"client.id": "me", "client.secret": "hunter2", "method": "oidc"}
    oidc |= {"token.endpoint.url": f"{server.url}/token"}
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    settings |= {name + key: value for key, value in oidc.items()}
    login = read_login(Settings((("test", settings),)), 5).sasl
    assert isinstance(login, OAuthBearer)
    assert callable(login.token)
    login.token()


def maven(server):
    Repository(server.url, Login("me", "hunter2")).read("a")


# Each module of the package that opens URLs, and a call that makes it do so with a password.
CALLS = {
    "cli/kafka/servers.py": registry,
    "cli/commands/protocol/_login.py": token,
    "jvm/_web.py": maven,
}


def opened_in(path):
    """Return the names in a module by which URLs may be opened; exceptions of these modules are none."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if _opens(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            full = {f"{node.module}.{name}" for name in names}
            found |= {node.module} if _opens(node.module) else {name for name in full if _opens(name)}
            found |= names & NAMES
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and node.value in OPENERS:
            found.add(node.value)  # as in importlib.import_module
    return found


def _opens(module):
    return any(module == name or module.startswith(f"{name}.") for name in OPENERS)


def sources():
    folders = (PACKAGE, *(ROOT / name for name in (".ci", "benchmarks", "examples", "spec-conformance")))
    return [path for folder in folders for path in folder.rglob("*.py")]


def test_one_module_opens_urls():
    """No other module of the package, its scripts and its examples imports what opens URLs."""
    found = {path.relative_to(ROOT).as_posix(): names for path in sources() if (names := opened_in(path))}
    assert found == {
        "cloudevents_kafka/primitives/web.py": {"urllib.request", "OpenerDirector"},
        # confluent's client of a schema registry, made from the user's settings.
        "cloudevents_kafka/clients/schema_registry.py": {"SchemaRegistryClient"},
    }


@pytest.mark.parametrize(
    "source",
    [
        "import urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen as u",
        "import http.client\nhttp.client.HTTPSConnection('h')",
        "from http.client import HTTPConnection",
        "import requests.sessions",
        "import importlib\nimportlib.import_module('httpx')",
        "from confluent_kafka.schema_registry import SchemaRegistryClient",
    ],
)
def test_other_ways_are_found(tmp_path, source):
    """The search finds each usual way to open a URL."""
    (tmp_path / "a.py").write_text(source)
    assert opened_in(tmp_path / "a.py")


def test_all_callers_are_tested():
    """Each module that uses the opener has a call here."""
    using = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "web" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloudevents_kafka.primitives")
        if node.module == "cloudevents_kafka.primitives.web" or "web" in {alias.name for alias in node.names}
    }
    assert using == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_credentials_follow_a_redirect(serve, name, status):
    """The server of the URL receives the password; the target of a redirect receives none."""
    target = serve()
    source = serve(status, Location=f"{target.url}/x", **{"Set-Cookie": "session=hunter2"})
    with suppress(CommandError, CloudEventsKafkaError, FetchFailed):
        CALLS[name](source)
    assert SECRETS[1] in source.text
    assert len(target.requests) == (0 if name.endswith("_login.py") and status > 303 else 1)
    for word in (*SECRETS, "uthorization", "ookie", "grant_type"):
        assert word not in target.text


@pytest.mark.parametrize("name", CALLS)
def test_no_credentials_follow_a_redirect_to_the_same_server(serve, name):
    """The rule has no exception for the same host and port."""
    server = serve(302, Location="/x")
    with pytest.raises((CommandError, CloudEventsKafkaError, FetchFailed)):
        CALLS[name](server)
    first, *others = server.requests
    assert "Authorization" in first[1]
    assert len(others) == 5
    assert not [headers for _, headers, _ in others if "Authorization" in headers]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "http://h:x/", "//"]
)
def test_redirects_to_other_schemes_are_refused(serve, name, location):
    """A redirect leads to a host by http or https only; the error has the status."""
    with pytest.raises((CommandError, CloudEventsKafkaError, FetchFailed)) as caught:
        CALLS[name](serve(302, Location=location))
    assert "302" in str(caught.value)


def test_redirects_are_followed(serve):
    """Relative and absolute redirects are followed, five at most, without the login in their URL."""
    target = serve(200, b"found")
    middle = serve(
        307, Location=f"http://me:hunter2@{target.address}/\u00e4 b#part".encode().decode("latin-1")
    )
    with open_url(f"{middle.url}/a", timeout=5, limit=10) as answer:
        assert answer.read() == b"found"
        assert answer.promised == 5
    assert target.requests[0][0] == "GET /%C3%A4%20b HTTP/1.1"
    assert "uthorization" not in target.text


def test_redirects_end():
    """A redirect without end is refused after six requests."""
    with Server(302, Location="/again") as server:
        with pytest.raises(RefusedRedirect, match="redirects more than 5 times"):
            open_url(server.url, timeout=5, limit=10)
        assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://h/x", "from https to http"),
        ("HTTP://h/x", "from https to http"),
        ("file:///x", "without http or https"),
        ("data:,x", "without http or https"),
    ],
)
def test_https_stays_https(location, reason):
    """A redirect from https to http is refused, and the reason says so."""
    request = web.urllib.request.Request("https://h/a")
    error = HTTPError("https://h/a", 302, "Found", {"Location": location}, io.BytesIO())
    with pytest.raises(RefusedRedirect, match=reason) as refused:
        web._target(request, error)
    assert (refused.value.closed, refused.value.read(9)) == (True, b"")
    with HTTPError("https://h/a", 302, "Found", {"Location": "//i/b"}, io.BytesIO()) as error:
        assert web._target(request, error).geturl() == "https://i/b"


def test_a_redirect_is_not_read(serve):
    """The body of a redirect, which may have no end, is not read."""
    target = serve(200, b"found")
    source = serve(302, b"", Location=target.url, **{"Content-Length": str(1 << 40)})
    with open_url(source.url, timeout=5, limit=10) as answer:
        assert answer.read() == b"found"


def test_proxy_credentials_stay_with_the_proxy(serve, monkeypatch):
    """The password of a proxy is not sent to a target that is reached without it."""
    target = serve(200, b"found")
    proxy = serve(302, Location=f"http://localhost:{target.address.rpartition(':')[2]}/x")
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@{proxy.address}")
    monkeypatch.setenv("no_proxy", "localhost")
    with open_url("http://repo.invalid/a", timeout=5, limit=10) as answer:
        assert answer.read() == b"found"
    assert SECRETS[1] in proxy.text
    assert "uthorization" not in target.text


def test_answers_are_bounded(serve):
    """No more than the limit is read, at once or in blocks."""
    server = serve(200, b"x" * 100)
    for sizes in ([None], [60, 60], [1] * 100):
        with open_url(server.url, timeout=5, limit=100) as answer:
            assert b"".join(map(answer.read, sizes)) == b"x" * 100
        with open_url(server.url, timeout=5, limit=99) as answer, pytest.raises(TooLarge, match="at most 99"):
            list(map(answer.read, sizes))


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://h/x", "h:80/x", "http://", "http://me:hunter2@h:x/", "http://[h/"]
)
def test_bad_urls(url):
    """Other URLs are refused without showing them."""
    with pytest.raises(InvalidURL) as caught:
        open_url(url, timeout=5, limit=10)
    assert "hunter2" not in str(caught.value)


def test_a_login_in_the_url(serve):
    """The login of a URL is sent as a header, percent-decoded; a passed one counts more."""
    server = serve()
    url = f"http://me:hunter%32@{server.address}/a"
    for login in (None, "you:x"):
        open_url(url, timeout=5, limit=10, login=login).__exit__()
    headers = [headers for _, headers, _ in server.requests]
    assert SECRETS[1] in headers[0]
    assert base64.b64encode(b"you:x").decode() in headers[1]
    assert "hunter" not in server.text
