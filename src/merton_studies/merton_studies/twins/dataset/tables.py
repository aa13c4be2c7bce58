"""The files of twins of a dataset: a row per frame and distortion as CSV and Parquet, and all means as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from merton_studies.twins.dataset.scores import DatasetTwins, Mean, ScoredFrame, SettingScore
from merton_studies.twins.tables import write_files

COLUMNS: dict[str, str] = {
    "episode": "int64",
    "frame": "int64",
    "task": "string",
    "distortion": "string",
    "level": "int64",
    "to_clean": "float64",
    "to_recorded": "float64",
    "clean_to_recorded": "float64",
    "rows": "int64",
    "why": "string",
}
"""Columns of the table, and the types of pyarrow that they have. `rows` is the length of the answer, `why` the reason
of an answer that is no action; the answers themselves are in asked.jsonl."""


def write_tables(found: DatasetTwins, folder: Path) -> list[Path]:
    """Write twins.csv, twins.json and, where pyarrow is installed, twins.parquet; equal twins give equal bytes.

    Raises InfrastructureError if one cannot be written.
    """
    return write_files(folder, COLUMNS, [_row(frame) for frame in found.frames], as_json(found), found.about)


def as_json(found: DatasetTwins) -> dict[str, Any]:
    """All numbers but those of single frames."""
    return {
        **found.about,
        "notes": list(found.notes),
        "spread": dict(zip(found.units, found.spread.width.tolist(), strict=True)),
        "floors": {name: _mean(mean) for name, mean in vars(found.floors).items()},
        "settings": [_setting(score) for score in found.scores],
    }


def _row(scored: ScoredFrame) -> tuple[object, ...]:
    answer = scored.asked.shown[scored.setting]
    return (
        scored.asked.episode,
        scored.asked.frame,
        scored.asked.task,
        scored.setting.distortion,
        scored.setting.level,
        _rounded(scored.to_clean),
        _rounded(scored.to_recorded),
        _rounded(scored.clean_to_recorded),
        0 if answer.rows is None else len(answer.rows),
        answer.why,
    )


def _setting(score: SettingScore) -> dict[str, Any]:
    return {
        "distortion": score.setting.distortion,
        "level": score.setting.level,
        "to_clean": _mean(score.to_clean),
        "to_recorded": _mean(score.to_recorded),
        "worse": _mean(score.worse),
        "to_chance": _rounded(score.to_chance),
        "no_action": score.no_action,
    }


def _mean(mean: Mean | None) -> dict[str, Any] | None:
    if mean is None:
        return None
    ends = [round(end, 6) for end in mean.interval]
    return {"mean": round(mean.value, 6), "interval": ends, "frames": mean.frames, "episodes": mean.episodes}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
