"""A run as a run of MLflow, on a server or in a database file: the level is the step of its metrics."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from merton.errors import require
from merton.results.text import plain_name
from merton.study.trackers.content import Content

EXPERIMENT = "merton"
"""MLflow's experiment, unless MLFLOW_EXPERIMENT_NAME names another."""
TAG = "merton.run"
SHA256 = "merton.sha256"
DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # Merton sends nothing to others, and neither does its use of a client
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # by default a server that is away is asked for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Environment of the client where the user has set nothing else."""
METRICS, PARAMETERS = 1000, 100
"""The most of one request (MLflow's REST API)."""
LONGEST_KEY, LONGEST_VALUE = 250, 6000
"""Characters of a parameter (MLflow's limits)."""
Item = TypeVar("Item")


def log(run: Content, where: str) -> str:
    """Log a run to the tracking URI `where`; one that is there with this content is left as it is.

    A run that is there with fewer trials, or half logged, goes to MLflow's bin once the new one is complete.
    Errors are those of the client.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    mlflow = require("mlflow", "mlflow", "--log-to mlflow")
    require("alembic", "mlflow", "--log-to mlflow")
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    client = mlflow.MlflowClient(tracking_uri=where)
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
    known = client.get_experiment_by_name(name)
    experiment = known.experiment_id if known else client.create_experiment(name)
    earlier = client.search_runs([experiment], f"tags.`{TAG}` = '{run.identity}'")
    same = next((one for one in earlier if _is_whole(one, run)), None)
    if same is not None:
        return f"MLflow: {where} has this run already, in experiment {name} as {same.info.run_id}"
    made = client.create_run(
        experiment,
        start_time=_milliseconds(run),
        run_name=run.run,
        tags={TAG: run.identity, SHA256: run.sha256, "merton.version": run.settings.get("merton", "")},
    )
    try:
        _fill(client, mlflow.entities, made.info.run_id, run)
    except BaseException:
        client.set_terminated(made.info.run_id, "FAILED")
        raise
    client.set_terminated(made.info.run_id, "FINISHED")
    for one in earlier:
        client.delete_run(one.info.run_id)
    replaced = f"; {len(earlier)} earlier of it in the bin" if earlier else ""
    return f"MLflow: {where}, experiment {name}, run {run.run} ({made.info.run_id}){replaced}"


def _is_whole(one: Any, run: Content) -> bool:
    return one.data.tags.get(SHA256) == run.sha256 and one.info.status == "FINISHED"


def _milliseconds(run: Content) -> int:
    return int(run.created.timestamp() * 1000)


def _fill(client: Any, entities: Any, id: str, run: Content) -> None:
    """Metrics, parameters and files of a run of MLflow."""
    time_ms = _milliseconds(run)
    points = [(0, run.summary), *run.by_level()]
    metrics = [
        entities.Metric(name, value, time_ms, level) for level, values in points for name, value in values.items()
    ]
    parameters = [
        entities.Param(_key(name), value[:LONGEST_VALUE]) for name, value in run.settings.items() if value != ""
    ]
    for some in _portions(metrics, METRICS):
        client.log_batch(id, metrics=some)
    for some in _portions(parameters, PARAMETERS):
        client.log_batch(id, params=some)
    for file in run.files:
        client.log_artifact(id, str(file))


def _key(name: str) -> str:
    """A setting's name with the characters that MLflow takes; distinct ones stay distinct."""
    return plain_name(name, "[^A-Za-z0-9_./ -]", LONGEST_KEY, "_")


def _portions(items: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    return (items[first : first + most] for first in range(0, len(items), most))
