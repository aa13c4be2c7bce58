"""A run as a run of Weights & Biases, on its service or in the offline folder of its client: the level is the axis."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from merton.errors import InputError, require
from merton.study.trackers.content import Content, plain

DEFAULTS = {"WANDB_ERROR_REPORTING": "false"}
"""Environment of the client where the user has set nothing else."""
COMPLETE = "merton_sha256"
"""The entry of the summary that is written last: the hash of the content."""
MARK = "merton-logged"
"""The file in an offline folder that says that all was written, and for which project."""


def log(run: Content, where: str) -> str:
    """Log a run to PROJECT or ENTITY/PROJECT; the same content is the same run there, and is not logged twice.

    A run that has more trials than when it was logged is a run of its own beside the earlier one, in one group: what
    Weights & Biases has stored cannot be replaced. WANDB_MODE, WANDB_DIR and WANDB_API_KEY are the client's own.
    Errors are those of the client.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    wandb = require("wandb", "wandb", "--log-to wandb")
    entity, _, project = where.rpartition("/")
    if not project or "/" in entity or where.startswith("/"):
        raise InputError(f"{where!r} is no PROJECT or ENTITY/PROJECT")
    id = run.sha256[:32]
    offline = _offline(id, where)
    if offline is not None:
        return f"Weights & Biases: {offline} has this run already; wandb sync {offline} sends it"
    made = wandb.init(
        entity=entity or None,
        project=project,
        id=id,
        name=run.run,
        group=f"{run.run}-{run.identity}",
        job_type="merton report",
        config=dict(run.settings),
        resume="allow",
        settings=wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, disable_job_creation=True
        ),
    )
    folder, is_offline = Path(made.dir).parent, made.offline
    url = "" if is_offline else made.url
    if made.resumed and made.summary.get(COMPLETE) == run.sha256:
        made.finish()
        return f"Weights & Biases: {url} has this run already"
    try:
        _fill(wandb, made, run)
    except BaseException:
        made.finish(exit_code=1)
        raise
    made.finish()
    if not is_offline:
        return f"Weights & Biases: {url}"
    (folder / MARK).write_text(where, encoding="utf-8")
    return f"Weights & Biases: {folder}, offline; wandb sync {folder} sends it"


def _offline(id: str, where: str) -> Path | None:
    """The offline folder that has all of a run for this project, below WANDB_DIR or here."""
    marks = sorted(Path(os.environ.get("WANDB_DIR") or ".").glob(f"wandb/offline-run-*-{id}/{MARK}"))
    return next((mark.parent for mark in marks if mark.read_text(encoding="utf-8") == where), None)


def _fill(wandb: Any, made: Any, run: Content) -> None:
    made.define_metric("level")
    for score in sorted({curve.score for curve in run.curves}):
        made.define_metric(f"{score}/*", step_metric="level")
    for level, values in run.by_level():
        made.log({"level": level, **values})
    tables = {name: (list(table.columns), [list(row) for row in table.rows]) for name, table in run.tables.items()}
    made.log({name: wandb.Table(columns=columns, data=rows) for name, (columns, rows) in tables.items()})
    artifact = wandb.Artifact(f"{plain(run.run)}-report", type="report", metadata={"sha256": run.sha256})
    for file in run.files:
        artifact.add_file(str(file))
    made.log_artifact(artifact)
    made.summary.update({**run.summary, COMPLETE: run.sha256})
