"""A command prints tokens; each is kept for most of its life, and no error has a secret in it."""

from __future__ import annotations

import logging
import sys
import threading
import time

import pytest

from cloudevents_kafka.clients.oauth import TokenCommand, TokenError
from tests.support.cases import each

# Prints a token that differs each time, as JSON; the argument is its life in seconds.
PRINT = """
import json, sys, time
print(json.dumps({"access_token": f"t{time.time_ns()}", "expires_in": float(sys.argv[1])}))
"""


def printing(seconds: float = 600) -> list[str]:
    return [sys.executable, "-c", PRINT, str(seconds)]


def failing(code: str, *arguments: str) -> TokenCommand:
    return TokenCommand([sys.executable, "-c", f"import sys; {code}", *arguments])


def test_what_the_client_calls():
    """confluent-kafka gets the token, when it expires, a principal and extensions."""
    command = TokenCommand(printing(), principal="me", extensions={"logicalCluster": "lkc-1"})
    token, expires, principal, extensions = command("")
    assert token.startswith("t")
    assert 500 < expires - time.time() <= 600
    assert (principal, extensions) == ("me", {"logicalCluster": "lkc-1"})


def test_a_token_is_kept_for_most_of_its_life():
    """Clients and threads share a token; after three quarters of its life there is a new one."""
    command = TokenCommand(printing(4))
    tokens = []
    threads = [threading.Thread(target=lambda: tokens.append(command.token().value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 1
    deadline = time.monotonic() + 30
    while command.token().value == tokens[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert command.token().value not in tokens


def test_words_are_split_as_a_shell_does():
    """A text is split at blanks outside of quotes; a variable or a semicolon has no meaning."""
    command = TokenCommand(f"{sys.executable} -c 'print(__import__(\"sys\").argv[1])' '$HOME; x'")
    with pytest.raises(TokenError, match="printed 9 bytes without a token"):
        command.token()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            failing("sys.exit('no credentials for s3cret')", "s3cret"),
            r"exit code 1: no credentials for \*+; run",
        ),
        (failing("print('a\\nsasl.password=s3cret', file=sys.stderr); sys.exit(7)"), "exit code 7: sasl"),
        (failing("sys.exit('see https://me:s3cret@h/?key=s3cret')"), r"see https://\*+@h"),
        (failing("sys.exit(3)"), "failed: exit code 3; run it by hand"),
        (failing("sys.exit('\\x1b[31mred')"), r"exit code 1: \\x1b\[31mred;"),
        (failing("sys.stderr.buffer.write(b'a\\xe3\\x85\\xa4b'); sys.exit(1)"), r"1: a\\u3164b;"),
        (failing("print('s3cret')"), "not its expiry time"),
        (TokenCommand(["no-such-program", "s3cret"]), "'no-such-program' failed: there is no such program"),
        (TokenCommand(["/", "s3cret"]), "it cannot be run: Permission denied"),
        (TokenCommand(["a\0b"]), "must not contain NUL"),
        (TokenCommand([sys.executable, "-c", "import time; time.sleep(9)"], timeout=0.2), "within 0.2 s"),
    ],
)
def test_failures(command, words, caplog):
    """A failure says what happened and what to do, and has neither arguments nor output in it."""
    with caplog.at_level(logging.WARNING), pytest.raises(TokenError, match=words) as caught:
        command("")
    assert command.error is caught.value
    assert str(caught.value) in caplog.text
    assert "s3cret" not in caplog.text
    assert "s3cret" not in repr(command)


def test_the_next_run_may_succeed(tmp_path):
    """A failure is not kept: the client asks again."""
    command = TokenCommand([sys.executable, str(tmp_path / "later.py"), "600"])
    with pytest.raises(TokenError):
        command.token()
    (tmp_path / "later.py").write_text(PRINT)
    assert command.token().value
    assert command.error is None


@each(("words", "problem"), [("", "got nothing"), ([], "got nothing"), ("a 'b", "closed quotes")])
def test_no_command(words, problem):
    """An empty command and an open quote are errors of the constructor."""
    with pytest.raises(ValueError, match=problem):
        TokenCommand(words)


SHOWN = [
    "password=hun ter2",
    "error: client_secret=hunter2 rejected",
    "Authorization: Bearer hunter2",
    "> authorization: basic hunter2",
    '{"error": "x", "refresh_token": "hunter2"}',
    "client_secret%3Dhunter2",
    "POST https://me:hunter2@idp.example/token: 401",
    'password="hunter2"',
    "--client-secret hunter2",
]


@each("line", SHOWN)
def test_secrets_in_stderr(line):
    """A secret in the last line of stderr is not shown, in each of its forms."""
    with pytest.raises(TokenError, match="exit code 1") as caught:
        failing("sys.stderr.write(sys.argv[1][::-1]); sys.exit(1)", line[::-1]).token()
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_the_value_of_an_argument():
    """The value of an option of the command is masked where it stands alone."""
    with pytest.raises(TokenError) as caught:
        failing("sys.stderr.write('bad: ' + 'hunter' + '2'); sys.exit(1)", "--pin=hunter2").token()
    assert "hunter2" not in str(caught.value)


@each("text", ["a", "a.", "://a:", "password "])
def test_long_stderr(text):
    """The work for stderr grows with its size, and what is shown is short."""
    times = []
    for size in (20_000, 80_000):
        began = time.process_time()
        with pytest.raises(TokenError) as caught:
            failing(f"sys.stderr.write({text!r} * ({size} // {len(text)})); sys.exit(1)").token()
        times.append(time.process_time() - began)
        assert len(str(caught.value)) < 500
    assert times[1] < 6 * times[0] + 0.05
