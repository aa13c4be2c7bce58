"""A run as a folder of TensorBoard: the level is the step, an agent is a run there, its interval two runs more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from merton.errors import InfrastructureError, InputError, require
from merton.files import swapped_folder
from merton.results.trial_files import json_object
from merton.study.trackers.content import Content, Table, plain

MARK = "merton.json"
"""The file that says which run a folder has, and with which content."""


def log(run: Content, where: str) -> str:
    """Write the folder WHERE/<run>, whole or not at all; what an earlier call wrote there is replaced.

    TensorBoard shows a chart for each score and distortion. In it each agent has its line, and two thinner ones for the
    ends of the 95 % interval: TensorBoard's runs `<agent>`, `<agent>/low` and `<agent>/high`.

    Raises:
        InputError: the folder has something else, or another run of that name.
        InfrastructureError: it cannot be written.
    """
    writer = require("tensorboardX", "tensorboard", "--log-to tensorboard")
    folder = Path(where) / plain(run.run)
    about = {"run": run.run, "identity": run.identity, "sha256": run.sha256}
    if folder.exists():
        known = json_object(folder / MARK) or {}
        if known.get("identity") != run.identity:
            raise InputError(f"{folder} is there and has not this run: choose another folder, or remove it")
        if known == about:
            return f"TensorBoard: {folder} has this run already"
    try:
        with swapped_folder(folder) as draft:
            _write(run, draft, writer.SummaryWriter)
            for file in run.files:
                shutil.copyfile(file, draft / file.name)
            (draft / MARK).write_text(json.dumps(about), encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"cannot write {folder}: {error.strerror}") from None
    return f"TensorBoard: {folder}; tensorboard --logdir {where} shows it"


def _write(run: Content, folder: Path, summary_writer: type) -> None:
    """The events of each agent and of the whole run, with the time at which the run was begun."""
    time_s = run.created.timestamp()
    for agent in sorted({curve.agent for curve in run.curves}):
        mine = [curve for curve in run.curves if curve.agent == agent]
        for part, value in (("", "mean"), ("low", "low"), ("high", "high")):
            with summary_writer(str(folder / plain(agent) / part)) as writer:
                for curve in mine:
                    tag = f"{curve.score}/{plain(curve.distortion)}"
                    for point in curve.points:
                        writer.add_scalar(tag, getattr(point, value), point.level, walltime=time_s)
                        if not part:
                            writer.add_scalar(f"trials/{tag}", point.trials, point.level, walltime=time_s)
    with summary_writer(str(folder)) as writer:
        settings = Table(("setting", "value"), tuple(run.settings.items()))
        for name, table in (("settings", settings), ("drops", run.tables["drops"])):
            writer.add_text(name, _markdown(table), 0, walltime=time_s)


def _markdown(table: Table) -> str:
    def cell(value: object) -> str:
        text = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
        return " ".join(text.replace("|", "\\|").split())

    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)
