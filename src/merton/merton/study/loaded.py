"""A run or a record as a Python object: its records, and its tables as frames of pandas. `merton.load` makes one."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merton.errors import require
from merton.results import trial_files
from merton.results.export import table_rows
from merton.results.records import TrialRecord
from merton.results.store import open_record
from merton.study import beside, outputs

if TYPE_CHECKING:
    import pandas as pd


class Results:
    """The results of a run or of a record as they are now; each call reads them anew.

    Attributes:
        where: the folder of the run, the file or the address of the record.
    """

    def __init__(self, where: str | Path) -> None:
        """Open a run's folder or a record; raises InputError if there is none, or it cannot be read."""
        self.where = str(where)
        open_record(self.where, read_only=True).close()

    def __repr__(self) -> str:
        return f"merton.load({self.where!r})"

    @cached_property
    def path(self) -> Path | None:
        """The folder of the run; None for a record that lies in none."""
        folder = Path(self.where) if Path(self.where).is_dir() else Path(self.where).parent
        return folder if "://" not in self.where and (folder / "run.json").is_file() else None

    @property
    def about(self) -> dict[str, Any]:
        """The run's run.json: id, seeds, versions, hashes; `kind` is "episodes" where another program ran the trials.

        Empty for a record that lies in no run.
        """
        return (trial_files.json_object(self.path / "run.json") or {}) if self.path else {}

    @property
    def records(self) -> list[TrialRecord]:
        """All trials, by experiment and id."""
        with open_record(self.where, read_only=True) as store:
            return store.records()

    def frame(self, table: str = "trials") -> pd.DataFrame:
        """A table of the record as a frame of pandas: all trials, a row each, in the order and columns of trials.csv.

        Args:
            table: of `merton results export`: trials, drops, scores, matches, agents, cases or experiments.

        Returns:
            Numbers without a gap are int64 or float64, those with one float64 with NaN; texts are texts. `success`,
            `reference_success` and `cut_short` are 0 or 1. Scores of stages are 0..1, of execution 0..100; `slots` and
            `own_spread` are there where the run's folder has the outputs that they are computed from.

        Raises:
            InputError: the table is unknown.
            MissingDependencyError: pandas is not installed.
        """
        pandas = require("pandas", "frame", "a frame")
        with open_record(self.where, read_only=True) as store:
            further = {}
            if table == "trials" and self.path is not None:
                further = beside.by_trial(beside.scored(outputs.read(self.path, store.records())))
            kinds, rows = table_rows(store, table, further)
        columns: dict[str, Any] = {}
        for place, (name, kind) in enumerate(kinds.items()):
            values = [row[place] for row in rows]
            if kind != "string":
                kind = "float64" if kind == "int64" and None in values else kind
                columns[name] = pandas.Series(values, dtype=kind)
            else:
                columns[name] = pandas.Series(values, dtype=None if values else object)
        return pandas.DataFrame(columns)
