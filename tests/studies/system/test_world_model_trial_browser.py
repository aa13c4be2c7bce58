"""Three scripted annotators in Chromium, one in Chinese: a small version of `tools/studies/world_model_trial.py`."""

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
TOOL = Path(__file__).parents[3] / "tools" / "studies" / "world_model_trial.py"


def test_the_board_of_the_pages_is_that_of_the_scores_given(tmp_path: Path) -> None:
    """Two tasks, six videos, a third of them each annotator's; the team beta lacks one of each task."""
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium (apt install chromium)")
    command = [sys.executable, str(TOOL), str(tmp_path), "--tasks", "2", "--videos", "2", "--plan", "different"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=stretched(240), check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads((tmp_path / "trial.json").read_bytes())
    assert (found["scores"], found["not as given"], found["cells that differ"]) == (22, 0, 0)
    assert found["most videos of an annotator, team and task"] == 2
