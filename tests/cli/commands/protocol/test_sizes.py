"""``protocol sizes``: the table, the histogram, the picture."""

from __future__ import annotations

from cloudevents_kafka.protocol.kip625 import sizes


def test_table(run):
    """The table is printed; the histogram where it is asked for."""
    assert run("protocol", "sizes").stdout == f"{sizes.table()}\n"
    assert run("protocol", "sizes", "--histogram").stdout == f"{sizes.table()}\n\n{sizes.histogram()}\n"


def test_picture(run, tmp_path):
    """The picture goes to its file; where that cannot be written, it is said."""
    path = tmp_path / "sizes.svg"
    assert run("protocol", "sizes", "--picture", path).exit_code == 0
    assert path.read_text() == sizes.picture()
    done = run("protocol", "sizes", "--picture", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"--picture: cannot write {tmp_path}: Is a directory" in done.stderr
