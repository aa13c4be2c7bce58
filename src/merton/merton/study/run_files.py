"""The files of a run that its report leads to."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "results.sqlite": "the record: one row per trial",
    "trials.csv": "the same rows for a spreadsheet",
    "model_scores.csv": "the models’ scores of answers and decisions, for a spreadsheet",
    "trials/": "a folder for each trial: answers, actions, path, scores, and the pictures that were seen",
    "videos/": "films of trials",
    "references/": "the undistorted runs that were added, to measure failures against",
    "recording.mcap": "everything that the graph said",
    "logs/": "a log for each node",
    "experiment.yaml": "the experiment, as given",
    "design.yaml": "the design, as given",
    "episodes.jsonl": "a line at the begin and at the end of each episode: the record can be made from it again",
    "run.json": "versions, seeds and hashes",
    "thresholds.csv": "the thresholds",
    "attribution.sqlite": "the trials in which only a part of the images is distorted",
    "attribution.html": "where it breaks",
    "attribution.json": "the same for programs",
}
"""Name in the run's folder, a folder with a stroke, to what it is; in the order of the list."""


def present(run: Path) -> list[tuple[str, str]]:
    """Those that there are: address relative to the run's folder, and what it is."""
    return [
        (name, words)
        for name, words in FILES.items()
        if ((run / name).is_dir() if name.endswith("/") else (run / name).is_file())
    ]


def added_references(run: Path) -> int:
    """The number of reference runs that were added because no agent is a yardstick; they are in no record."""
    return len(list((run / "references").glob("*/trial.json")))
