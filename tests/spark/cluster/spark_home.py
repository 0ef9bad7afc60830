"""A home of Spark for clusters on this machine, whose workers write their files into it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from sysconfig import get_paths

from cloudevents_kafka.jvm import find_java

ROOT = Path(__file__).parents[3]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short runs do not benefit from more optimization
QUIET = "rootLogger.level = error\nrootLogger.appenderRef.out.ref = out\nappender.out.type = Console\n"
QUIET += "appender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
QUIET += "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %p %c: %m%n%ex\n"


def make_home(folder: Path) -> Path:
    """Return a folder that is Spark's home: PySpark's programs and jars, with room for ``work``."""
    import pyspark

    home = folder / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "log4j2.properties").write_text(QUIET)
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name)
    return home


def bare_python(folder: Path) -> Path:
    """Return a program that runs this Python without .pth files: an editable install uses one."""
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    program.chmod(0o755)
    return program


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a driver whose workers have all packages but this one."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": str(bare_python(folder)),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(get_paths()[name] for name in ("purelib", "platlib"))),
        "SPARK_HOME": str(make_home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # a worker that is not started by Spark's scripts looks for it
        "TMPDIR": str(folder),
    }


def script(path: Path, *arguments: str | Path) -> list[str]:
    """Return a command that runs a script with this package, which its workers do not inherit."""
    paths = [str(ROOT), str(ROOT / "spec-conformance")]
    code = f"import runpy, sys; sys.path[:0] = {paths}; del sys.argv[0]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return [sys.executable, "-c", code, str(path), *map(str, arguments)]


def descendants(pid: int, name: str) -> list[int]:
    """Return the processes below a process whose command line has a text."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    children: dict[int, list[tuple[int, str]]] = {}
    for own, parent, command in [(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]:
        children.setdefault(parent, []).append((own, command))
    found, below = [], [pid]
    for parent in below:  # not in the order of ps: numbers of processes start again from 1
        for own, command in children.get(parent, []):
            below.append(own)
            if name in command:
                found.append(own)
    return found


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
