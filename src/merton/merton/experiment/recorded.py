"""Models, tasks and world of a run as its run.json has them: a finished run is read without a catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationInfo, model_validator

from merton.cognition.models.base import MODELS, ModelEntry
from merton.config import Model, validated
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.errors import FileError, InputError, UnknownNameError
from merton.files import file_sha256
from merton.models.catalogue import OWN_FILE, VARIABLE, Catalogue, CatalogueEntry
from merton.results.trial_files import json_object
from merton.world.tasks import TASKS
from merton.world.tasks import VARIABLE as TASKS_VARIABLE
from merton.worlds.description import WorldDescription

CATALOGUES: Mapping[str, Catalogue[Any]] = {"vlm": MODELS, "vla": POLICIES}
"""Kind to the catalogue of this machine."""
FOR_PEOPLE = frozenset(
    {
        *("description", "paper", "licence", "source", "memory_gb", "verified", "unverified"),
        *("requests_per_minute", "cost_per_1000", "action"),
    }
)
"""Fields of an entry that no trial depends on; `action` only says in which worlds a policy may act."""

Known = Mapping[str, Any]
"""Kind ("vlm", "vla", "task", "world") to name to entry, to the record of a task's file, or to the `WorldDescription`
of a world that is not the embedded cell."""


class WithRecordedModels(Model):
    """Base of an experiment that may be one of a run: the entries of its models are the run's, else this machine's."""

    _recorded: Known = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _keep_what_the_run_recorded(self, info: ValidationInfo) -> WithRecordedModels:
        if info.context:
            self._recorded = info.context
        return self

    def vlm_entry(self, name: str) -> ModelEntry:
        """The entry of a VLM; raises UnknownNameError for none."""
        return self._entry("vlm", name)

    def vla_entry(self, name: str) -> PolicyEntry:
        """The entry of a VLA; raises UnknownNameError for none."""
        return self._entry("vla", name)

    def _entry(self, kind: str, name: str) -> Any:
        return self._recorded.get(kind, {}).get(name) or CATALOGUES[kind][name]


def models_named(name: str, ids: Iterable[str] = ()) -> tuple[str, str]:
    """The VLM and the VLA of "vlm+vla", or of a VLA alone, for which the VLM is "".

    Args:
        name: as a user typed it.
        ids: of agents that could have been meant, which an error lists.

    Raises:
        UnknownNameError: one of them is in no catalogue.
    """
    vlm, plus, vla = name.rpartition("+")
    if vla not in POLICIES:
        raise UnknownNameError("agent or vla", vla, dict.fromkeys((*ids, *POLICIES)))
    if plus and vlm not in MODELS:
        raise UnknownNameError("vlm", vlm, MODELS)
    return vlm, vla


def provenance_of(used: Iterable[tuple[str, str]], tasks: Iterable[str]) -> dict[str, Any]:
    """The entries of run.json about the models and, where a lab's files define some, the tasks of an experiment.

    `models`: kind to name to `entry`, every field of it, and for one that is not Merton's own `file`. `tasks`: name to
    `file` and `sha256`. No secrets: an entry names the environment variable of a key, not the key.

    Args:
        used: (kind, name) of each model.
        tasks: names.
    """
    models: dict[str, dict[str, Any]] = {}
    for kind, name in used:
        file = CATALOGUES[kind].file_of(name)
        models.setdefault(kind, {})[name] = {
            "entry": CATALOGUES[kind][name].model_dump(mode="json"),
            **({"file": str(file)} if file else {}),
        }
    files = {task: file for task in tasks if (file := TASKS.file_of(task)) is not None}
    own = {task: {"file": str(file), "sha256": file_sha256(file)} for task, file in files.items()}
    return {"models": models, **({"tasks": own} if own else {})}


def known_names(about: Mapping[str, Any], where: Path) -> Known:
    """The models, tasks and world that a run.json, `about`, has; empty for one of an older Merton.

    Raises:
        FileError: an entry is none; the text names the file, `where`.
    """
    kinds: dict[str, type[CatalogueEntry]] = {"vlm": ModelEntry, "vla": PolicyEntry}
    known: dict[str, Any] = {}
    try:
        for kind, type_ in kinds.items():
            for name, recorded in about.get("models", {}).get(kind, {}).items():
                fields = {key: value for key, value in recorded["entry"].items() if key in type_.model_fields}
                known.setdefault(kind, {})[name] = validated(type_, json.dumps(fields), f"{where}: {kind} {name}")
        known["task"] = {name: dict(recorded) for name, recorded in about.get("tasks", {}).items()}
        if "world" in about:
            name, text = about["world"]["name"], json.dumps(about["world"]["description"])
            known["world"] = {name: validated(WorldDescription, text, f"{where}: world {name}")}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FileError(f"{where}: models, tasks and world must be as Merton wrote them: put the file back") from None
    return known


def known_of_run(run: Path) -> Known:
    """As `known_names`, of the run.json in a folder; empty if there is none."""
    return known_names(json_object(run / "run.json") or {}, run / "run.json")


def refuse_other_models(used: Iterable[tuple[str, str]], about: Mapping[str, Any], run: Path) -> None:
    """Raise InputError unless this machine has the models and tasks that a run was made with, as they were then.

    Args:
        used: (kind, name) of each model of the run.
        about: its run.json; one of an older Merton says nothing about models.
        run: its folder, for the text.
    """
    known = known_names(about, run / "run.json")
    for kind, name in used:
        if name not in CATALOGUES[kind]:
            file = about.get("models", {}).get(kind, {}).get(name, {}).get("file")
            raise InputError(
                f"the {kind} {name!r} is in no catalogue here, and carrying trials of {run} out needs it{_remedy(file)}"
            )
        if (entry := known.get(kind, {}).get(name)) and (keys := list(_changed(entry, CATALOGUES[kind][name]))):
            raise InputError(
                f"the {kind} {name!r} is another one than when {run} was begun, by its {', '.join(keys)}: put the "
                "entry back, or start a new run"
            )
    for task, recorded in known["task"].items():
        file = TASKS.file_of(task) if task in TASKS else None
        if file is None:
            raise InputError(
                f"the task {task!r} is in no file here, and carrying trials of {run} out needs it: it was made with "
                f"{TASKS_VARIABLE}={recorded.get('file')}"
            )
        if file_sha256(file) != recorded.get("sha256"):
            raise InputError(
                f"the task {task!r} is another one than when {run} was begun: put {recorded.get('file')} back, or "
                "start a new run"
            )


def _remedy(file: str | None) -> str:
    """The clause that says where a missing model's entry is."""
    if file is None:
        return f": name its file in {VARIABLE}, or put it into ./{OWN_FILE}"
    by_itself = f", or go to the folder of that {OWN_FILE}" if Path(file).name == OWN_FILE else ""
    return f": it was made with {file}, so set {VARIABLE}={file}{by_itself}"


def _changed(recorded: CatalogueEntry, live: CatalogueEntry) -> Iterator[str]:
    """The fields, or `settings.NAME`, in which two entries differ and that a trial may depend on."""
    then, now = recorded.model_dump(mode="json"), live.model_dump(mode="json")
    for key in then:
        if key in FOR_PEOPLE or then[key] == now[key]:
            continue
        if key == "settings":
            names = {**then[key], **now[key]}
            yield from (f"settings.{name}" for name in names if then[key].get(name) != now[key].get(name))
        else:
            yield key
