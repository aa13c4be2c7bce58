"""The files of a replay: a table of its twins as CSV and Parquet, and all numbers as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from merton.files import write_file
from merton.results.csv_writer import write_csv
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton.statistics.intervals import Interval
from merton_studies.twins.replay import Replay
from merton_studies.twins.summary import COLUMNS, SettingSummary, row, self_checks, summaries


def write_tables(found: Replay, folder: Path) -> list[Path]:
    """Write twins.csv, twins.json and, where pyarrow is installed, twins.parquet; the same replay gives the same bytes.

    Raises InfrastructureError if one cannot be written.
    """
    return write_files(folder, COLUMNS, [row(twin) for twin in found.twins], as_json(found), found.about)


def write_files(
    folder: Path,
    columns: Mapping[str, str],
    rows: Sequence[tuple[object, ...]],
    content: Mapping[str, Any],
    about: Mapping[str, object],
) -> list[Path]:
    """Write twins.csv, twins.json and, where pyarrow is installed, twins.parquet.

    Args:
        folder: where they are written.
        columns: name to type, as pyarrow names it.
        rows: of the tables.
        content: of twins.json.
        about: JSON values, which are kept in the schema of the Parquet file.

    Raises:
        InfrastructureError: one cannot be written.
    """
    files = [write_csv(folder / "twins.csv", list(columns), rows), folder / "twins.json"]
    write_file(files[-1], (json.dumps(content, indent=1) + "\n").encode())
    if find_spec("pyarrow"):
        files.append(folder / "twins.parquet")
        write_file(files[-1], _parquet(columns, rows, about))
    return files


def as_json(found: Replay) -> dict[str, Any]:
    """All numbers of a replay but those of single decisions."""
    return {
        **found.about,
        "notes": list(found.notes),
        "self_check": [vars(check) for check in self_checks(found)],
        "settings": [_setting(each) for each in summaries(found)],
    }


def _setting(summary: SettingSummary) -> dict[str, Any]:
    return {
        "policy": summary.policy,
        "distortion": summary.setting.distortion,
        "level": summary.setting.level,
        "trials": len(summary.trials),
        "scenes": summary.scenes,
        "left": summary.left,
        "left_interval": list(summary.left_interval),
        "verdicts": dict(summary.verdicts),
        "mean_cm": round(summary.mean_cm, 4),
        "mean_interval_cm": _rounded(summary.mean_interval_cm),
        "median_cm": round(summary.median_cm, 4),
        "most_cm": round(summary.most_cm, 4),
        "by_trial": [
            {
                "trial": each.twins[0].trial.id,
                "left_at_step": each.left_at,
                "distance_cm": round(100 * each.farthest.away.distance_m, 4),
                "verdict": each.verdict,
            }
            for each in summary.trials
        ],
    }


def _rounded(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [round(end, 4) for end in interval]


def _parquet(columns: Mapping[str, str], rows: Sequence[tuple[object, ...]], about: Mapping[str, object]) -> bytes:
    arrow = require_pyarrow()
    schema = arrow.schema(list(columns.items()), metadata={"merton": json.dumps(about, sort_keys=True)})
    values = {name: [each[place] for each in rows] for place, name in enumerate(columns)}
    return parquet_bytes(arrow.table(values, schema=schema))
