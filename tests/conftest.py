"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# Two shared cores: a slow moment is no failure, and the same run gives the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
