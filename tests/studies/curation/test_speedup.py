"""The table of times: of the pool by those of the benchmark, from what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from merton.errors import InputError
from merton_studies.curation.speedup import COST, TOTAL, speed_ups, write_speed_ups


def folder(path: Path, **seconds: float | None) -> Path:
    path.mkdir()
    told = {name: {"questions": len(name) * 10, "seconds": value} for name, value in seconds.items()}
    (path / COST).write_text(json.dumps({"answerers": told}))
    return path


def test_the_papers_table_of_times_comes_out(tmp_path: Path) -> None:
    """A2Eval, Table 5: 412.9 by 89.4 and 56.0 by 14.5 hours are 4.619 and 3.862; the sums 468.9 by 103.9 are 4.513."""
    full = folder(tmp_path / "full", thinking=412.9, instruct=56.0, log=None, alone=1.0)
    rows = speed_ups(full, folder(tmp_path / "small", thinking=89.4, instruct=14.5, log=None))
    assert [row.model for row in rows] == ["thinking", "instruct", TOTAL]
    assert [row.ratio for row in rows] == pytest.approx([4.619, 3.862, 4.513], abs=5e-4)
    written = write_speed_ups(rows, tmp_path).read_text().splitlines()
    assert written[0] == "model,pool_questions,pool_s,benchmark_questions,benchmark_s,speedup"
    assert written[1].startswith("thinking,80,412.9,80,89.4,4.6")


def test_nothing_is_made_up(tmp_path: Path) -> None:
    full = folder(tmp_path / "full", one=1.0, log=None)
    assert speed_ups(full, folder(tmp_path / "small", other=1.0, log=2.0)) == []
    (zero, _) = speed_ups(full, folder(tmp_path / "zero", one=0.0))
    assert zero.ratio is None
    (tmp_path / "zero" / COST).write_text('{"answerers": {"one": {"infer_s": 1.0}}}')
    with pytest.raises(InputError, match="has no seconds by model"):
        speed_ups(full, tmp_path / "zero")
