"""docs/use/episodes.md: its design, its program and what that prints."""

import re
import subprocess
import sys
from pathlib import Path

from sources import ROOT

BLOCKS = dict(re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs/use/episodes.md").read_text(), re.DOTALL))


def test_the_program_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "design.yaml").write_text(BLOCKS["yaml"])
    ended = subprocess.run([sys.executable, "-c", BLOCKS["python"]], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == BLOCKS["text"]


def test_what_other_programs_import_loads_no_simulator_and_no_framework() -> None:
    heavy = {"mujoco", "pinocchio", "torch", "pyarrow", "starlette", "scipy", "numba"}
    code = (
        "import sys, merton.gym, merton.episodes.run, merton.episodes.folder; "
        f"print(sorted({heavy} & {{name.partition('.')[0] for name in sys.modules}}))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
