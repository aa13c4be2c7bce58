"""Skips a file of tests whose package is absent, and does not import one that is there."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def skip_file_without(package: str, reason: str) -> None:
    """For packages that take long: every worker of a run collects every file, and few do the tests of this one."""
    if find_spec(package) is None:
        pytest.skip(reason, allow_module_level=True)
