"""Taxonomies of one's own: they extend the shipped one, another file, or stand alone; every mistake is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from merton.errors import InputError
from merton.leaderboard.published.arena import ItemScore, boards
from merton.leaderboard.published.taxonomy import load_taxonomy

EXTENDING = """\
extends: embodied_arena
metrics:
  stars: stars of a person, 0 to 5, divided by 5
capabilities:
  - name: Object Perception
    dimensions: [Object Material]
  - name: Social Perception
    dimensions: [Gesture]
tasks:
  - name: Embodied Question Answering
    benchmarks:
      - name: LabQA
        metrics: [exact match, stars]
        dimensions: [Object Material, Gesture, Object Type]
  - name: Handing Over
    benchmarks:
      - {name: Handover, metrics: [success rate], dimensions: [Gesture]}
"""
ALONE = """\
metrics:
  success rate: 1 if the episode succeeded, else 0
capabilities:
  - {name: Kitchen, dimensions: [Cooking, Washing]}
tasks:
  - name: Household
    benchmarks:
      - {name: KitchenBench, metrics: [success rate], dimensions: [Cooking, Washing]}
"""


def written(folder: Path, text: str, name: str = "lab.yaml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_a_file_adds_to_the_shipped_taxonomy(tmp_path: Path) -> None:
    shipped, found = load_taxonomy(), load_taxonomy(written(tmp_path, EXTENDING))
    assert len(found.benchmarks) == len(shipped.benchmarks) + 2
    assert found.capabilities[0].dimensions == (*shipped.capabilities[0].dimensions, "Object Material")
    assert [one.name for one in found.capabilities[7:]] == ["Social Perception"]
    assert found.tasks[0].benchmarks[:-1] == shipped.tasks[0].benchmarks
    assert found.tasks[0].benchmarks[-1].name == "LabQA"
    assert found.tasks[-1].name == "Handing Over"
    assert set(found.metrics) == {*shipped.metrics, "stars"}
    made = boards([ItemScore("a", "LabQA", "1", "Gesture", 0.5)], found)
    assert {"benchmark-labqa", "task-handing-over"} <= {board.name for board in made}


def test_a_file_stands_alone_and_is_extended_by_another(tmp_path: Path) -> None:
    alone = load_taxonomy(written(tmp_path, ALONE))
    assert ([one.name for one in alone.benchmarks], alone.dimensions) == (["KitchenBench"], ("Cooking", "Washing"))
    more = (
        "extends: lab.yaml\ntasks:\n  - name: Household\n    benchmarks:\n"
        "      - {name: Sink, metrics: [success rate], dimensions: [Washing]}\n"
    )
    assert [one.name for one in load_taxonomy(written(tmp_path, more, "more.yaml")).benchmarks] == [
        "KitchenBench",
        "Sink",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "exact match, stars",
            "exact mach",
            "line 13: tasks, entry 1, benchmarks, entry 1, metrics, entry 1: LabQA: un",
        ),
        ("exact match, stars", "exact mach", "unknown metric 'exact mach'; did you mean 'exact match'? choose from: "),
        ("Gesture, Object Type]", "Gestures]", "unknown dimension 'Gestures'; did you mean 'Gesture'?"),
        (
            "Gesture, Object Type]",
            "Gesture, Gesture]",
            "line 14: tasks, entry 1, benchmarks, entry 1, dimensions, entr",
        ),
        ("name: LabQA", "name: ' LabQA'", "must be a name on one line without space around it, got the text ' LabQA'"),
        ("name: LabQA", "name: ''", "line 12: tasks, entry 1, benchmarks, entry 1, name: must be a name on one line"),
        ("name: LabQA", 'name: "Lab\\nQA"', "must be a name on one line"),
        ("name: LabQA", f"name: {'x' * 201}", "must have at most 200 characters, got the text"),
        ("name: LabQA", "name: OpenEQA", "the benchmark 'OpenEQA' stands twice; it is in embodied_arena, too"),
        ("name: Handover", "name: LabQA", "the benchmark 'LabQA' stands twice; leave one"),
        ("name: Handover", "name: LABQA", "stands twice ('LabQA' differs in signs and capitals alone); leave one"),
        (
            "[Gesture]\ntasks",
            "[Object Type]\ntasks",
            "the dimension 'Object Type' stands twice; it is in embodied_aren",
        ),
        ("[Gesture]\ntasks", "[Object Material]\ntasks", "the dimension 'Object Material' stands twice; leave one"),
        ("name: Object Perception", "name: object perception", "'Object Perception' differs in signs and capitals"),
        (
            "name: Social Perception",
            "name: Object Perception",
            "the capability 'Object Perception' stands twice; leave",
        ),
        (
            "name: Handing Over",
            "name: Embodied Question Answering",
            "the task 'Embodied Question Answering' stands twi",
        ),
        ("[Object Material]", "[]", "line 6: capabilities, entry 1, dimensions: must have at least 1 entry, got 0"),
        ("[Object Material]", "Object Material", "must be a list, got the text 'Object Material'"),
        ("stars: stars of a person, 0 to 5, divided by 5", "stars: 5", "line 3: metrics.stars: must be a text, got 5"),
        ("  stars:", "  MRA:", "line 3: metrics.MRA: the metric 'MRA' stands twice; it is in embodied_arena, too"),
        ("tasks:", "task:", "unknown key; did you mean 'tasks'? valid keys are: extends, metrics, capabilities, tasks"),
        ("extends: embodied_arena", "extends: [embodied_arena]", "line 1: extends: must be a text, got a list"),
        ("extends: embodied_arena", "extends: embodied", "line 1: extends: there is no file"),
        ("extends: embodied_arena", "extends: lab.yaml", "taxonomies extend each other in a circle: "),
        ("extends: embodied_arena\n", "", "unknown dimension 'Object Type'; did you mean 'Object Material'?"),
    ],
)
def test_a_mistake_is_one_sentence_with_file_line_and_choices(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in EXTENDING
    file = written(tmp_path, EXTENDING.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_taxonomy(file)
    assert message in str(caught.value)
    assert "lab.yaml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_stands_alone_needs_every_part(tmp_path: Path) -> None:
    for start, key in (("metrics", "metrics"), ("capabilities", "capabilities"), ("tasks", "tasks")):
        parts = ALONE.replace("\n  ", "\0")  # a line for each key
        text = "\n".join(line for line in parts.split("\n") if not line.startswith(start)).replace("\0", "\n  ")
        with pytest.raises(
            InputError, match=f"{key}: is missing or empty; a taxonomy that extends no other needs {key}"
        ):
            load_taxonomy(written(tmp_path, text))


def test_files_in_a_circle_and_no_mapping_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "extends: two.yaml\n", "one.yaml")
    written(tmp_path, "extends: one.yaml\n", "two.yaml")
    with pytest.raises(
        InputError, match=r"two.yaml, line 1: extends: .* circle: .*one.yaml -> .*two.yaml -> .*one.yaml"
    ):
        load_taxonomy(tmp_path / "one.yaml")
    with pytest.raises(InputError, match="must be a mapping with the keys"):
        load_taxonomy(written(tmp_path, "- a\n"))
    with pytest.raises(InputError, match="No such file"):
        load_taxonomy(tmp_path / "none.yaml")
