"""The directory of a run: its files, each written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from merton import __version__
from merton.config import load, loads, read_text
from merton.errors import FileError, InfrastructureError, InputError
from merton.experiment.plan import ExperimentSpec
from merton.experiment.recorded import known_names, provenance_of, refuse_other_models
from merton.experiment.run_folder import json_bytes, name_of_new_run, new_run
from merton.experiment.trial import ReferenceRun, TrialReport
from merton.experiment.world_facts import UR5
from merton.files import file_sha256, write_file
from merton.perception.distortion import REFERENCE_WIDTH_PX
from merton.recording.images import jpeg
from merton.results.recorded_world import version_sentences, world_of
from merton.results.records import STAIRCASE, TrialRecord
from merton.results.store import ResultStore
from merton.results.trial_files import is_of_episodes
from merton.world.cell import load_cell
from merton.world.tasks import lab_files
from merton.worlds.entry import WORLDS


class RunDirectory:
    """A run on disk.

    Attributes:
        spec: the experiment, read from the copy inside it, with the models and tasks that its run.json has.
        id: of the experiment in its results: the name the directory was created with, even if it was renamed since.
    """

    def __init__(self, path: Path) -> None:
        """Open an existing run of an experiment; raises InputError if there is none at `path`."""
        self.path = path.resolve()
        about = _json_object(self.path / "run.json")
        if is_of_episodes(about):
            raise InputError(
                f"{path} is a run of episodes that another program carried out: Merton has no world to "
                "carry them out in or to film them; `merton report`, `compare`, `gate` and `attribute` read what is "
                "recorded"
            )
        if not (self.path / "experiment.yaml").is_file():
            raise InputError(f"{path} is not a run: it has no experiment.yaml")
        self.spec = load(self.path / "experiment.yaml", ExperimentSpec, known_names(about, self.path / "run.json"))
        self.id = str(about.get("id", self.path.name))

    @classmethod
    def create(
        cls,
        runs: Path,
        experiment_file: Path,
        name: str | None = None,
        in_process: bool = False,
        text: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> RunDirectory:
        """Start a new run of an experiment below `runs`: its folder appears with both of its files, or not at all.

        Args:
            runs: made if need be.
            experiment_file: copied into the run.
            name: of the run; None makes one of the experiment's name and the time.
            in_process: it is begun without ROS.
            text: of experiment.yaml, if that is not the file as it is (`merton.experiment.changes`).
            about: further entries of run.json, such as `kind: gate`; `source` is the file and its SHA-256 without.

        Raises:
            InputError: the name is taken or not a plain name, or the folder cannot be written.
        """
        text = read_text(experiment_file) if text is None else text
        spec = loads(text, ExperimentSpec, str(experiment_file))
        source = {"file": str(experiment_file.absolute()), "sha256": file_sha256(experiment_file)}
        name = name_of_new_run(name, spec.name)
        with new_run(runs, name) as draft:
            (draft / "experiment.yaml").write_bytes(text.encode())
            run = cls(draft)
            run.id = name
            further = {"source": source, **(about or {}), **({"in_process": True} if in_process else {})}
            run.write_json("run.json", {**run._provenance(), **further})
        return cls(runs / name)

    def check_experiment(self, experiment_file: Path, text: str | None = None) -> None:
        """Raise InputError unless this is a run of that experiment that can go on here; `text` as of `create`."""
        content = experiment_file.read_bytes() if text is None else text.encode()
        if content != (self.path / "experiment.yaml").read_bytes():
            raise InputError(
                f"{self.path} is a run of another experiment than {experiment_file}: start a new run, or resume with "
                f"{self.path / 'experiment.yaml'}"
            )
        self.check_here()
        self.check_models()

    def check_models(self) -> None:
        """Raise InputError unless this machine has its models and tasks as they were at its beginning."""
        refuse_other_models(self.spec.models, _json_object(self.path / "run.json"), self.path)

    def check_here(self) -> None:
        """Raise InputError unless it was begun with the defaults, the width of levels and the arm that hold here."""
        about = _json_object(self.path / "run.json")
        begun, held = about.get("design"), about.get("reference_width_px")
        if not isinstance(begun, dict) or held is None:
            raise InputError(
                f"{self.path} has no run.json that says with which levels and defaults it began: put its run.json "
                "back, or start a new run"
            )
        if begun != self.spec.design:
            keys = {**self.spec.design, **begun}
            changed = ", ".join(key for key in keys if begun.get(key) != self.spec.design.get(key))
            raise InputError(
                f"{self.path} was begun by a Merton with another default of {changed}: start a new run, or resume with "
                f"that Merton ({about.get('merton')})"
            )
        self._check_place(about)
        if held != REFERENCE_WIDTH_PX:
            raise InputError(
                f"{self.path} began with levels of distortion that hold at {held} pixels, and today's hold at "
                f"{REFERENCE_WIDTH_PX} pixels: start a new run"
            )

    def _check_place(self, about: Mapping[str, Any]) -> None:
        """Raise InputError unless the cell has the arm, or this machine the world, of its beginning."""
        if (world := world_of(about)) is not None:
            here = WORLDS[world.name].described()
            then = self.spec.facts.description
            today = world_of({"world": {"name": world.name, "description": here.model_dump(mode="json")}})
            if found := version_sentences(world, today, ("the run", "this machine")):
                raise InputError(f"{self.path} cannot go on here: {found[0].rstrip('.')}; start a new run")
            if then != here:
                raise InputError(
                    f"the world {world.name!r} is another one than when {self.path} was begun: start a new run"
                )
            return
        begun = {"arm": arm_of(about, self.path / "run.json")}
        if "calibration" in about:
            begun["calibration"] = str(about["calibration"])
        arm, present = _arm_in_words(begun), _arm_in_words(self._place())
        if arm != present:
            raise InputError(
                f"{self.path} was begun with the arm {arm}, and config/cell.yaml has {present}: start a new run, "
                f"or write {arm} there again"
            )

    @property
    def database(self) -> Path:
        return self.path / "results.sqlite"

    def _provenance(self) -> dict[str, Any]:
        tasks = {path.name: file_sha256(path) for path in lab_files()}
        own = ("mujoco",) if self.spec.world == UR5 else ()  # another world has its own, among its versions
        packages = ("numpy", "scipy", *own, "numba", "SQLAlchemy", "simplejpeg", "ros-jazzy-rclpy")
        return {
            "id": self.id,
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "merton": __version__,
            "git": _git_revision(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": {"opencv": cv2.__version__}  # one of four distributions brings it
            | {name: version for name in packages if (version := _version(name))},
            **self._place(),
            "seed": self.spec.seed,
            "design": self.spec.design,
            "blind_agents": _blind_agents(self.spec),
            "reference_width_px": REFERENCE_WIDTH_PX,
            "experiment_sha256": self.experiment_sha256,
            "cores": os.cpu_count(),
            **provenance_of(self.spec.models, self.spec.tasks),
            **({"task_files_sha256": tasks} if tasks else {}),
        }

    def _place(self) -> dict[str, Any]:
        """The arm of the UR5 cell, or the world as it describes itself and its entry of the catalogue."""
        described = self.spec.facts.description
        if described is None:
            cell = load_cell()
            calibration = cell.kinematic_calibration
            return {"arm": cell.robot.model} | ({} if calibration is None else {"calibration": calibration.id})
        entry = WORLDS[self.spec.world].model_dump(mode="json")
        return {
            "world": {"name": self.spec.world, "description": described.model_dump(mode="json"), "entry": entry},
            "in_process": True,
        }

    @property
    def experiment_sha256(self) -> str:
        """Of its experiment.yaml, 64 hexadecimal digits."""
        return hashlib.sha256((self.path / "experiment.yaml").read_bytes()).hexdigest()

    @property
    def arm(self) -> str:
        """The arm of its cell, a name of `merton.world.arms`; raises FileError if run.json does not name it."""
        return arm_of(_json_object(self.path / "run.json"), self.path / "run.json")

    @property
    def in_process(self) -> bool:
        """Whether it was begun without ROS (`merton.experiment.workers`), and goes on in that way."""
        return _json_object(self.path / "run.json").get("in_process") is True

    @property
    def took_s(self) -> float | None:
        """Wall time of the run [s]; None if it is not finished, was resumed, or `merton attribute` did it."""
        took_s = _json_object(self.path / "run.json").get("wall_s")
        return float(took_s) if isinstance(took_s, (int, float)) else None

    def records(self) -> list[TrialRecord]:
        """The results so far, in the order of `ResultStore.records`; raises InputError before there is a record."""
        with ResultStore(self.database, read_only=True) as store:
            return store.records(self.id)

    def recorded(self) -> int:
        """The number of results so far."""
        if not self.database.is_file():
            return 0
        with ResultStore(self.database, read_only=True) as store:
            return len(store.ids(self.id))

    def register(self, store: ResultStore) -> None:
        """Enter the experiment, from run.json, and its agents in the record of results.

        An agent's version is its models, with the commits of their checkpoints. Harmless to repeat.

        Raises:
            InputError: the record has another experiment or another agent with one of these ids.
        """
        entries = _json_object(self.path / "run.json")
        about = {key: value for key, value in entries.items() if isinstance(value, str)}
        world = world_of(entries)
        store.register_experiment(
            self.id,
            self.spec.name,
            self.spec.seed,
            about.get("experiment_sha256"),
            about.get("merton"),
            about.get("created"),
            *((world.name, world.versions) if world else ()),
        )
        for agent in self.spec.agents:
            models = (self.spec.vlm_entry(agent.vlm), self.spec.vla_entry(agent.vla))
            named = [f"{model.name}@{model.revision}" if model.revision else model.name for model in models]
            store.register_agent(agent.id, version=" + ".join(named))

    def amend(self, **entries: Any) -> None:
        self.write_json("run.json", {**_json_object(self.path / "run.json"), **entries})

    def write_json(self, relative: str, content: Any) -> None:
        """Write a file whole or not at all."""
        write_file(self.path / relative, json_bytes(content))

    def save(self, report: TrialReport) -> None:
        """Write a trial's pictures and then its trial.json, whose presence means that the pictures are complete."""
        self.save_files(report.record.id, trial_files(report))

    def save_files(self, trial_id: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a trial (`trial_files`), the last one whole or not at all; threads may do so together."""
        folder = self._folder(trial_id)
        *pictures, last = files
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in pictures:
                (folder / name).write_bytes(files[name])
        except OSError as error:
            raise InfrastructureError(f"cannot write {folder}: {error.strerror}") from None
        write_file(folder / last, files[last])

    def _folder(self, trial_id: str) -> Path:
        """The folder of a trial's files: those of reference runs that were added are not among the trials."""
        agent = self.spec.reference_agent
        is_added = agent is not None and trial_id.startswith(f"{agent.id}.")
        return self.path / ("references" if is_added else "trials") / trial_id

    def finished(self, recorded: Iterable[str]) -> set[str]:
        """The ids of the trials that need not be run again: of those whose results are recorded, and of added ones.

        A reference trial whose saved results cannot be read is not among them: other trials are measured against it.
        """
        references = {trial.id for trial in self.spec.trials() if trial.case.is_reference}
        added = [trial.id for trial in self.spec.reference_runs()]
        done = {id for id in recorded if id not in references or self.reference_run(id) is not None}
        return done.union(id for id in added if self.reference_run(id) is not None)

    def planned(self, recorded: Iterable[str]) -> int | None:
        """The number of trials of the whole run, by the ids of those that are recorded.

        None if the experiment's file does not say it: `merton gate` draws scenes until it can decide.
        """
        plan = {trial.id for trial in self.spec.trials()}
        is_drawn = self.spec.levels != STAIRCASE and any(id not in plan for id in recorded)
        return None if is_drawn else self.spec.trial_count

    def added_runs(self) -> int:
        """The number of finished reference runs that were added (`ExperimentSpec.reference_runs`)."""
        return sum(self.reference_run(trial.id) is not None for trial in self.spec.reference_runs())

    def finish(self, **entries: Any) -> None:
        """Say in run.json that the run is finished, with these entries, and which reference runs were added if any."""
        if added := self.added_runs():
            entries["reference_runs_added"] = f"{added} of the {self.spec.facts.yardstick}, not rated"
        self.amend(finished=True, **entries)

    def reference_run(self, trial_id: str) -> ReferenceRun | None:
        """The results of a finished reference trial; None if it has not been run or its trial.json cannot be read."""
        details = _json_object(self._folder(trial_id) / "trial.json")
        try:
            path = tuple((float(x), float(y), float(z)) for x, y, z in details["path"])
            final = None if details["final_tcp"] is None else np.array(details["final_tcp"], dtype=np.float64)
            return ReferenceRun(details["answers"]["reference"], final, path, details["success"] is True)
        except (ValueError, KeyError, TypeError):
            return None


def _blind_agents(spec: ExperimentSpec) -> list[str]:
    """Ids of the agents that look at nothing: policies without a camera, whose instruction is no VLM's answer."""
    return [agent.id for agent in spec.agents if not spec.vla_entry(agent.vla).cameras and spec.couple is None]


def trial_files(report: TrialReport) -> dict[str, bytes]:
    """The files of a trial by name, in the order in which they are to be written: its pictures, then trial.json."""
    files: dict[str, bytes] = {}
    for picture in report.pictures:
        files[picture.file("reference")] = bytes(jpeg(picture.reference))
        files[picture.file("distorted")] = bytes(jpeg(picture.distorted))
    return files | {"trial.json": json_bytes(report.details)}


def arm_of(about: Mapping[str, Any], file: Path) -> str:
    """The arm that a run was begun with, from the content of its run.json, `file`.

    Raises:
        InputError: the run is of another world than the UR5 cell.
        FileError: it is absent.
    """
    if (world := world_of(about)) is not None:
        raise InputError(f"{file.parent} is a run of the world {world.name}, and this is of the UR5 cell alone")
    if not isinstance(arm := about.get("arm"), str):
        raise FileError(f"{file} does not name the arm of its run in `arm`: put the run.json back that it began with")
    return arm


def _arm_in_words(place: Mapping[str, Any]) -> str:
    """The arm of a `_place` in the UR5 cell."""
    return " with the calibration ".join(str(part) for part in place.values())


def _json_object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file is absent or unreadable."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """The checkout's revision, with "+" if it has uncommitted changes; None outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        describe = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty=+", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return describe.stdout.strip() or None
