"""``kip625`` prints the table, the histogram and the picture."""

from __future__ import annotations

from conformance.kip625 import sizes


def test_table(run):
    """The table is printed, and the histogram with --histogram."""
    assert run("kip625").stdout == f"{sizes.table()}\n"
    assert run("kip625", "--histogram").stdout == f"{sizes.table()}\n\n{sizes.histogram()}\n"


def test_picture(run, tmp_path):
    """The picture is written to its file; a file that cannot be written is an error."""
    path = tmp_path / "sizes.svg"
    assert run("kip625", "--picture", path).exit_code == 0
    assert path.read_text() == sizes.svg()
    result = run("kip625", "--picture", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--picture: cannot write {tmp_path}: Is a directory" in result.stderr
