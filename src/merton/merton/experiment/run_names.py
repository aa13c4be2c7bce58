"""Names of runs: the newest one, one by its name, and a list of all with how far each is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from merton.errors import InputError, MertonError, did_you_mean
from merton.results.trial_files import DESIGN_FILE, EPISODES, is_of_episodes

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory

RUNS = Path("runs")
"""The folder of runs, in the folder one stands in."""
LATEST = "latest"
"""In place of a run: the newest."""
REPORT = "report.html"
PAGES = (REPORT, "gate.html")
"""The page of a run, by its kind."""
GATE = "gate"
"""The `kind` in run.json of a run of `merton gate`; its `verdict` is there once it has one."""
EXPERIMENT_FILE = "experiment.yaml"
_STATES = {"not worse": "passed", "worse": "worse", "not resolved": "not resolved"}


@dataclass(frozen=True)
class RunSummary:
    """A run at a glance.

    Attributes:
        path: its folder.
        created: when it was begun; the change of its experiment.yaml or design.yaml if run.json does not say it.
        experiment: its name, of episodes that of their design; empty if it cannot be read.
        done, planned: trials; none are planned of a gate, which draws scenes until it can decide, nor of episodes,
            whose scenes another program chooses.
        is_finished: the run has ended, or has all trials.
        fault: one sentence if the run cannot be read, else empty.
        kind: `GATE` or `EPISODES`; empty for an experiment.
        verdict: of a gate, as `merton.statistics.sequential.Conclusion`; empty before it has one.
    """

    path: Path
    created: datetime
    experiment: str = ""
    done: int = 0
    planned: int = 0
    is_finished: bool = False
    fault: str = ""
    kind: str = ""
    verdict: str = ""

    @property
    def has_report(self) -> bool:
        return (self.path / REPORT).is_file()

    @property
    def state(self) -> str:
        """In a word or two: unreadable, unfinished, finished, or no report; of a gate its verdict, or unfinished; of
        episodes, which end when the other program does, episodes or no report."""
        if self.fault:
            return "unreadable"
        if self.kind == EPISODES:
            return "episodes" if self.has_report else "no report"
        if self.kind == GATE:
            return _STATES.get(self.verdict, "finished" if self.is_finished else "unfinished")
        return "unfinished" if not self.is_finished else "finished" if self.has_report else "no report"


def run_folders(runs: Path = RUNS) -> list[Path]:
    """The runs below a folder, newest first."""
    folders = [file.parent for name in (EXPERIMENT_FILE, DESIGN_FILE) for file in runs.glob(f"[!.]*/{name}")]
    folders = [folder for folder in dict.fromkeys(folders) if is_run(folder)]
    return sorted(folders, key=lambda folder: (_created(folder), folder.name), reverse=True)


def find_run(name: str | Path, runs: Path = RUNS) -> Path:
    """The folder of the run that a user named: `latest`, the name of one below `runs`, or a folder.

    `latest` is the newest run of an experiment, or of episodes: gates are passed over.

    Raises:
        InputError: there is no such run; the text names the one that is most like it.
    """
    if str(name) == LATEST:
        folders = run_folders(runs)
        newest = next((folder for folder in folders if not is_gate(folder)), None)
        if newest is None:
            none = "run of an experiment, only of gates," if folders else "run"
            raise InputError(f"there is no {none} below {runs} yet: merton demo makes one")
        return newest
    path = Path(name)
    for folder in (path, runs / path):
        if is_run(folder):
            return folder
    if path.is_dir():
        raise InputError(f"{path} is not a run: it has no experiment.yaml")
    beside = [folder.name for folder in run_folders(path.parent if len(path.parts) > 1 else runs)]
    hint = did_you_mean(path.name, [*beside, LATEST])
    raise InputError(f"there is no run {str(name)!r}; {hint}`merton runs` lists all, and {LATEST!r} names the newest")


def find_record(name: str | Path, runs: Path = RUNS) -> str:
    """The record that a user named: an address or a path as it is, else the folder of a run; `latest` is always a run.

    Raises InputError as `find_run`.
    """
    text = str(name)
    if text != LATEST and ("://" in text or Path(name).exists() or Path(name).suffix):
        return text
    return str(find_run(name, runs))


def latest_run(runs: Path, experiment_file: Path, text: str | None = None) -> RunDirectory:
    """The newest run of the same experiment below `runs`; raises InputError if there is none.

    `text` is its content with the changes of a command line, if there are some.
    """
    from merton.experiment.run import RunDirectory

    content = _bytes(experiment_file) if text is None else text.encode()
    for folder in run_folders(runs):
        if content is not None and _bytes(folder / "experiment.yaml") == content:
            return RunDirectory(folder)
    raise InputError(f"there is no run of {experiment_file} below {runs} to resume")


def _bytes(file: Path) -> bytes | None:
    """The content of a file; None if it cannot be read, as that of another user's run."""
    try:
        return file.read_bytes()
    except OSError:
        return None


def summarize(folder: Path) -> RunSummary:
    """A run at a glance; one that cannot be read has its fault in it."""
    from merton.experiment.run import RunDirectory

    created = _created(folder)
    if is_episodes(folder):
        return _of_episodes(folder, created)
    try:
        run = RunDirectory(folder)
        done = run.recorded()
    except MertonError as error:
        return RunSummary(folder, created, fault=str(error))
    about = _about(folder)
    if is_gate(folder):
        verdict = str(about.get("verdict") or "")
        ended = bool(verdict) or (about.get("kind") != GATE)  # older gates do not say their verdict
        return RunSummary(folder, created, run.spec.name, done, 0, ended, kind=GATE, verdict=verdict)
    planned = run.spec.trial_count
    return RunSummary(folder, created, run.spec.name, done, planned, about.get("finished") is True or done >= planned)


def _of_episodes(folder: Path, created: datetime) -> RunSummary:
    """A run of episodes at a glance, by run.json and the record alone: its design need not be known here."""
    from merton.results.database import RUN_FILE
    from merton.results.store import ResultStore

    name, done = "", 0
    try:
        if (folder / RUN_FILE).is_file():
            with ResultStore(folder / RUN_FILE, read_only=True) as store:
                done = sum(size.results for size in store.sizes()[0])
                name = next((item.name for item in store.experiment_records() if item.name), "")
    except MertonError as error:
        return RunSummary(folder, created, name, fault=str(error), kind=EPISODES)
    return RunSummary(folder, created, name, done, 0, True, kind=EPISODES)


def is_run(folder: Path) -> bool:
    """Whether a folder is a run: of an experiment, or of episodes."""
    return (folder / EXPERIMENT_FILE).is_file() or is_episodes(folder)


def is_episodes(folder: Path) -> bool:
    """Whether a folder is a run of episodes that another program carried out, by its design.yaml and run.json."""
    return (folder / DESIGN_FILE).is_file() and is_of_episodes(_about(folder))


def is_gate(folder: Path) -> bool:
    """Whether a run is one of `merton gate`, by its run.json or, if an older Merton made it, by its gate.md."""
    kind = _about(folder).get("kind")
    return kind == GATE or (kind != EPISODES and (folder / "gate.md").is_file())


def _about(folder: Path) -> dict[str, object]:
    try:
        content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _created(folder: Path) -> datetime:
    try:
        created = datetime.fromisoformat(str(_about(folder)["created"]))
    except (KeyError, ValueError):
        name = DESIGN_FILE if is_episodes(folder) else EXPERIMENT_FILE
        created = datetime.fromtimestamp((folder / name).stat().st_mtime, timezone.utc)
    return created if created.tzinfo else created.replace(tzinfo=timezone.utc)
