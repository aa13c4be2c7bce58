"""Five scripted raters at once in Chromium: a small version of `tools/studies/people_trial.py`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patience import stretched

for needed in ("fastapi", "playwright"):
    pytest.importorskip(needed, reason=f"{needed} is not installed (the extra serve, make develop)")
TOOL = Path(__file__).parents[3] / "tools" / "studies" / "people_trial.py"


def test_what_raters_gave_is_what_the_record_and_the_statistics_say(tmp_path: Path) -> None:
    """One leaves and comes back, one sends twice and uses two tabs, one takes back, one is careless."""
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium (apt install chromium)")
    command = [sys.executable, str(TOOL), str(tmp_path), "--items", "6", "--protocol", "quality"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=stretched(240), check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (quality,) = json.loads((tmp_path / "trial.json").read_bytes())
    assert (quality["items"], quality["not as given"]) == (5, 0)
    assert quality["answers"] == quality["given"] >= 15
    assert quality["alpha"]["quality"]["stated"] == pytest.approx(quality["alpha"]["quality"]["own"], abs=1e-9)
