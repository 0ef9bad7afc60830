"""The script that compiles the Java function, ``.ci/jar.py``, as a module."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def jar_script() -> ModuleType:
    spec = spec_from_file_location("jar_script", Path(__file__).parents[2] / ".ci" / "jar.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
