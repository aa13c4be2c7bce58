"""A lab's own task: the example of docs/use/adding_a_task.md as a lab would copy it, and files that are wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from merton.errors import InputError, MertonError
from merton.world.tasks import TASKS, VARIABLE, Prop, Task, split_and_verb, task_names
from merton.world.tasks.task import Tasks
from sources import ROOT

PAGE = (ROOT / "docs" / "use" / "adding_a_task.md").read_text(encoding="utf-8")
STACK, MINE = (
    re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)[1]  # type: ignore[index]
    for kind in ("python", "yaml")
)


@pytest.fixture
def lab(tmp_path: Path) -> dict[str, str]:
    """The environment of a lab that has the file of the page, and another one whose motion does nothing."""
    lazy = re.sub(r"    over, down = .*?return .*?\n\n", "    return hand\n\n", STACK, flags=re.DOTALL)
    lazy = lazy.replace('"stack', '"heap').replace('STAND = Prop("stand"', 'STAND = Prop("plinth"')
    (tmp_path / "stack.py").write_text(STACK, encoding="utf-8")
    (tmp_path / "heap.py").write_text(lazy, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(MINE, encoding="utf-8")
    return {**os.environ, VARIABLE: os.pathsep.join(str(tmp_path / name) for name in ("stack.py", "heap.py"))}


def test_the_contract_holds_for_the_example_and_not_for_a_motion_that_does_nothing(lab: dict[str, str]) -> None:
    pytest.importorskip("mujoco", reason="the contract plays in the simulator (the extra sim)")
    contract = ROOT / "tests" / "unit" / "world" / "test_task_contract.py"
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-rA", contract, "-k", "stack or heap"]
    printed = subprocess.run(command, cwd=ROOT, env=lab, capture_output=True, text=True, check=False).stdout
    outcome = {case: word for word, case in re.findall(r"^(PASSED|FAILED) \S+::(\S+)", printed, re.MULTILINE)}
    ofs = {
        task: {case.partition("[")[0] for case in outcome if case.endswith(f"[{task}]")} for task in ("stack", "heap")
    }
    assert ofs["stack"] == ofs["heap"]
    assert len(ofs["stack"]) == 8
    wrong = {case for case, word in outcome.items() if word == "FAILED"}
    assert wrong == {
        "test_the_oracle_does_it_through_the_whole_gate[heap]",
        "test_its_motion_is_a_function_of_the_poses[heap]",
    }, printed


def test_the_experiment_of_the_page_runs(lab: dict[str, str], tmp_path: Path, renders: None) -> None:
    command = [sys.executable, "-m", "merton", "run", "mine.yaml", "--in-process", "--workers", "1", "--name", "mine"]
    done = subprocess.run(command, cwd=tmp_path, env=lab, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    run = tmp_path / "runs" / "mine"
    success = {}
    for folder in (run / "trials").iterdir():
        agent, task, *_ = folder.name.split(".")
        success[agent, task] = json.loads((folder / "trial.json").read_text(encoding="utf-8"))["success"]
    assert success == {(agent, task): agent == "oracle" for agent in ("oracle", "hold") for task in ("stack", "pick")}
    assert sorted(json.loads((run / "run.json").read_text())["task_files_sha256"]) == ["heap.py", "stack.py"]


# Files that are wrong -------------------------------------------------------------------------------------------------


def own(**changes: Any) -> Task:
    """The task `pick` with other values."""
    return Task(**{**vars(TASKS["pick"]), **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "pick-up"}, "one word of small letters, got 'pick-up'"),
        ({"props": (Prop("tall stand", lambda sizes: []),)}, "one word of small letters, got 'tall stand'"),
        ({"props": (Prop("mug", lambda sizes: []),)}, "the prop 'mug' of the task 'pick' has the name of another kind"),
        ({"template": "pick it up"}, r"must have the fields \{object\} and may have \{direction\}, .*'pick it up'"),
        ({"template": "pick {object} from {object}"}, "each once"),
        ({"template": "pick the {thing}"}, r"must have the fields \{object\}"),
        ({"template": "put {object} on {target}"}, r"must have the fields \{object\} and may"),
        ({"targets": ("mat",)}, r"must have the fields \{object\} and \{target\} and may"),
        ({"objects": ("kettle",)}, "no thing for the shape 'kettle'; there are: cube, cylinder, mat"),
    ],
)
def test_a_wrong_task_is_refused_in_one_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        own(**changes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, r"^cannot read .*lab\.py, which MERTON_TASKS names: there is no such file$"),
        ("TASK = 3", r"lab\.py must define TASK, a merton\.world\.tasks\.Task$"),
        ("1 / 0", r"lab\.py: its code failed: ZeroDivisionError: division by zero"),
        ("from merton.world.tasks.pick import TASK", "^task 'pick' is registered twice$"),
        (
            STACK.replace('"stand"', '"lid"'),
            "the prop 'lid' of the task 'stack' is another one than that of 'cover'",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(
    text: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "lab.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lab.py"))
    registry = Tasks()
    for name in ("pick", "cover"):
        registry.add(name, TASKS[name])
    for _ in range(2):  # it stays refused
        with pytest.raises(MertonError, match=says):
            list(registry)


def test_a_task_of_a_lab_has_plain_scenes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stack.py").write_text(STACK, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "stack.py"))
    registry = Tasks()
    registry.add("pick", TASKS["pick"])
    assert list(registry) == ["pick", "stack"]
    monkeypatch.setattr("merton.world.tasks.grammar.TASKS", registry)
    assert "stack" in task_names()
    assert not any(name.endswith("-stack") for name in task_names())
    with pytest.raises(InputError, match="unknown task 'test-stack'"):
        split_and_verb("test-stack")
