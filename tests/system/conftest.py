"""Fixtures of tests of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from set_up_alone import hiding


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that, on the path of Python, hides what `make setup` does not install."""
    return hiding(tmp_path_factory.mktemp("hook"))
