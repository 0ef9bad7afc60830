"""``protocol sizes`` prints the table, the histogram and the picture."""

from __future__ import annotations

from cloudevents_kafka.protocol.kip625 import sizes


def test_table(run):
    """The table is printed, and the histogram with --histogram."""
    assert run("protocol", "sizes").stdout == f"{sizes.table()}\n"
    assert run("protocol", "sizes", "--histogram").stdout == f"{sizes.table()}\n\n{sizes.histogram()}\n"


def test_picture(run, tmp_path):
    """The picture is written to its file; a file that cannot be written is an error."""
    path = tmp_path / "sizes.svg"
    assert run("protocol", "sizes", "--picture", path).exit_code == 0
    assert path.read_text() == sizes.svg()
    result = run("protocol", "sizes", "--picture", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--picture: cannot write {tmp_path}: Is a directory" in result.stderr
