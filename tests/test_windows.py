"""What loads without the modules of Python that Windows does not have."""

from __future__ import annotations

import subprocess
import sys

ABSENT = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
LOADED = (
    "cloudevents_kafka",
    "cloudevents_kafka.clients.aio",
    "cloudevents_kafka.cli.commands.consume",
    "cloudevents_kafka.cli.commands.decode",
    "cloudevents_kafka.cli.commands.doctor",
    "cloudevents_kafka.cli.commands.produce",
    "cloudevents_kafka.extensions",
    "cloudevents_kafka.testing",
    "cloudevents_kafka.testing.pytest_plugin",
)


def test_the_library_loads_without_the_modules_of_unix() -> None:
    """Clients, fakes and the first commands load; pytest loads the plugin wherever the package is."""
    absent = f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{absent}\nimport {', '.join(LOADED)}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
