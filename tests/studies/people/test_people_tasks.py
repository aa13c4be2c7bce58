"""Protocol tasks: what may be written, whose turn it is, and files that the dataset's build takes without an edit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from scipy.stats import friedmanchisquare

from merton.config import validated
from merton.errors import InputError
from merton.perception.dataset import build, read_tags
from merton.perception.dataset.tables import read_table
from merton.statistics.concordance import kendall_w
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocols.tasks import TaskAnswer, Tasks, TasksReview
from merton_studies.people.protocols.tasks_chain import chain, handled
from merton_studies.people.protocols.tasks_export import said_of, summary

TAGS = {"domain": "real", "perspective": "third_person", "object": "block", "background": "table"}
TASKS = (
    "Push the red cube to the left",
    "Pick up the blue cylinder",
    "Place the cup on the mat",
    "Cover the peg with the lid",
    "Pour the bottle into the bowl",
)
PROTOCOL = Tasks()


def an_item(name: str = "a.png", scene: str = "s") -> Item:
    return Item(name, scene, facts={"file": name})


class Study:
    """Answers as desk and ledger pass them: each is checked with those before it, and saved."""

    def __init__(self, *items: Item) -> None:
        self.items, self.answers = items, list[Answer]()

    def said(self, item: Item) -> list[Answer]:
        return said_of(self.items, self.answers)[item.id]

    def say(self, item: Item, rater: str, answer: Mapping[str, Any]) -> Answer:
        turn = PROTOCOL.next_turn(item, self.said(item))
        model = PROTOCOL.review if turn == "review" else PROTOCOL.answer
        found = PROTOCOL.checked(item, validated(model, answer, "answer"), self.said(item))  # type: ignore[type-var]
        number = len(self.answers) + 1
        kind = "review" if turn == "review" else "turn"
        plain = found.model_dump(mode="json")
        saved = Answer(f"a{number}", rater, number, item.id, kind, plain, 4.0, f"2026-11-01T10:00:00.{number:06d}Z")
        self.answers.append(saved)
        return saved

    def write(self, item: Item, tasks: Sequence[str] = TASKS) -> None:
        for place, task in enumerate(tasks):
            self.say(item, f"R{place + 1:02d}", {"tags": TAGS, "task": task})

    def accept(self, item: Item, order: Sequence[int] = range(5), **edits: str) -> None:
        texts = chain(self.said(item)).texts
        tasks = [{"text": edits.get(f"t{place}", texts[place]), "place": place} for place in order]
        self.say(item, "E01", {"decision": "accept", "tags": TAGS, "tasks": tasks})


def test_five_turns_then_the_expert_then_the_end() -> None:
    item = an_item()
    study = Study(item)
    turns = []
    for task in TASKS:
        turns.append(PROTOCOL.next_turn(item, study.said(item)))
        study.say(item, "R01", {"tags": TAGS, "task": task})
    assert turns == [0, 1, 2, 3, 4]
    assert PROTOCOL.next_turn(item, study.said(item)) == "review"
    study.accept(item)
    assert PROTOCOL.next_turn(item, study.said(item)) is None


def test_a_sent_back_image_asks_for_the_named_places_alone() -> None:
    item = an_item()
    study = Study(item)
    study.write(item)
    study.say(item, "E01", {"decision": "back", "places": [3, 1], "reason": "both are out of reach"})
    assert PROTOCOL.next_turn(item, study.said(item)) == 1
    view = PROTOCOL.view(item, study.said(item))
    assert (view["place"], view["yours"], view["sent_back"]) == (1, TASKS[1], "both are out of reach")
    study.say(item, "R02", {"tags": TAGS, "task": "Pull the drawer open"})
    assert PROTOCOL.next_turn(item, study.said(item)) == 3
    study.say(item, "R04", {"tags": TAGS, "task": "Twist the knob to the right"})
    assert PROTOCOL.next_turn(item, study.said(item)) == "review"
    assert [task["text"] for task in PROTOCOL.review_view(item, study.said(item))["tasks"]] == [
        TASKS[0],
        "Pull the drawer open",
        TASKS[2],
        "Twist the knob to the right",
        TASKS[4],
    ]


def test_a_flag_goes_to_the_expert_who_can_send_it_back_or_remove_it() -> None:
    item = an_item()
    study = Study(item)
    study.write(item, TASKS[:3])
    study.say(item, "R04", {"flag": "no_task"})
    assert PROTOCOL.next_turn(item, study.said(item)) == "review"
    assert PROTOCOL.review_view(item, study.said(item))["flag"] == "No further, harder task is possible"
    study.say(item, "E01", {"decision": "back", "reason": "there is a drawer"})
    assert PROTOCOL.next_turn(item, study.said(item)) == 3, "the places without a task are open again"
    study.say(item, "R04", {"flag": "offensive"})
    study.say(item, "E01", {"decision": "remove", "reason": "it is"})
    assert PROTOCOL.next_turn(item, study.said(item)) is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"tags": TAGS, "task": "Grab the red cube"}, "must begin with one of Cover, Insert"),
        ({"tags": TAGS, "task": "pick the red cube"}, "must begin with one of"),
        ({"tags": TAGS, "task": "Reach above the cube"}, "must begin with one of"),
        ({"tags": TAGS, "task": "Pick cube"}, "3 to 15 words; this one has 2"),
        ({"tags": TAGS, "task": "Pick " + "very " * 15 + "far cube"}, "3 to 15 words"),
        ({"tags": TAGS, "task": "Pick the \x00 cube"}, "control character"),
        ({"tags": TAGS, "task": "push the RED cube to the left"}, "must begin with one of"),
        ({"tags": TAGS, "task": "Push the RED cube to  the left"}, "there already"),
        ({"tags": TAGS, "task": "Push the red cube over the edge"}, "same verb and thing"),
        ({"task": "Pick the red cube"}, "choose the tags"),
        ({"tags": {**TAGS, "object": "robot"}, "task": "Pick the red cube"}, "unknown object 'robot'"),
        ({"tags": {"domain": "real"}, "task": "Pick the red cube"}, "perspective, object, background"),
        ({"tags": TAGS, "task": "Pick the red cube", "flag": "display"}, "not both"),
        ({"flag": "ugly"}, "flag"),
    ],
)
def test_a_wrong_task_is_refused_with_a_sentence(answer: Mapping[str, Any], fault: str) -> None:
    item = an_item()
    study = Study(item)
    study.write(item, TASKS[:1])
    with pytest.raises(InputError, match=fault):
        study.say(item, "R02", answer)
    assert len(study.answers) == 1


def test_the_same_verb_and_thing_need_a_reason() -> None:
    item = an_item()
    study = Study(item)
    study.write(item, TASKS[:1])
    study.say(item, "R02", {"tags": TAGS, "task": "Push the red cube around the cup", "reason": "an obstacle"})
    assert study.answers[-1].answer["reason"] == "an obstacle"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Pick up the red cube from the bowl", ("pick", "red cube")),
        ("Press and hold the button", ("press", "button")),
        ("Pull the drawer open", ("pull", "drawer")),
        ("Place a cup on the mat", ("place", "cup")),
        ("Pick", ("pick", "")),
    ],
)
def test_verb_and_thing_of_a_task(text: str, found: tuple[str, str]) -> None:
    assert handled(text) == found


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"tasks": [{"text": text, "place": at} for at, text in enumerate(TASKS[:4])]}, "needs 5 tasks"),
        ({"tasks": [{"text": text, "place": 0} for text in TASKS]}, "in the list once"),
        ({"tasks": [{"text": TASKS[0], "place": at} for at in range(5)]}, "Task 2 is there twice"),
        ({"tasks": [{"text": f"{text} \x07", "place": at} for at, text in enumerate(TASKS)]}, "Task 1: .*control"),
        ({"tags": None}, "choose the tags"),
        ({"decision": "back", "places": []}, "say why"),
        ({"decision": "back", "places": [], "reason": "hm"}, "Choose the tasks"),
        ({"decision": "remove"}, "say why"),
    ],
)
def test_a_wrong_review_is_refused_with_a_sentence(change: Mapping[str, Any], fault: str) -> None:
    item = an_item()
    study = Study(item)
    study.write(item)
    tasks = [{"text": text, "place": at} for at, text in enumerate(TASKS)]
    with pytest.raises(InputError, match=fault):
        study.say(item, "E01", {"decision": "accept", "tags": TAGS, "tasks": tasks} | change)


def test_the_expert_may_add_the_tasks_that_are_missing() -> None:
    item = an_item()
    study = Study(item)
    study.write(item, TASKS[:4])
    study.say(item, "R05", {"flag": "no_task"})
    tasks = [{"text": text, "place": at if at < 4 else None} for at, text in enumerate(TASKS)]
    study.say(item, "E01", {"decision": "accept", "tags": TAGS, "tasks": tasks})
    found = summary(study.items, study.answers)
    assert found["edited"]["n"] == 4
    assert found["kendall_w"]["n"] == 0, "an order of four tasks says nothing about that of five"


def test_no_name_of_another_is_in_a_view() -> None:
    item = replace(an_item("secret-model.png"), texts={})
    study = Study(item)
    study.write(item, TASKS[:3])
    for view in (PROTOCOL.view(item, study.said(item)), PROTOCOL.review_view(item, study.said(item))):
        text = json.dumps(view)
        assert "R01" not in text
        assert "secret" not in text
    assert "R03" not in str(PROTOCOL.values(item, study.answers[0].answer))


HOSTILE = (
    "Pick the <script>alert(1)</script> cube",
    "Push the cube'; DROP TABLE x; -- now",
    "Pull ../../../etc/passwd: [*x, &y] {a: b} # no",
    "Pour \u202ethe water\u202c into 'it' \"now\"",
    "Move the \ufeffcube \U0001f980 to \u05d0\u05d1\u05d2",
)


@pytest.fixture(scope="module")
def finished() -> Study:
    """Ten images: eight accepted, one removed, one that waits for the expert."""
    items = [an_item(f"image {number}.png", f"scene {number // 2}") for number in range(10)]
    study = Study(*items)
    for number, item in enumerate(items):
        study.write(item, HOSTILE if number == 3 else TASKS)
        if number == 8:
            study.say(item, "E01", {"decision": "remove", "reason": "blurred"})
        elif number == 0:
            study.accept(item, (1, 0, 2, 4, 3), t2="Place the tea cup on the mat")
        elif number < 8:
            study.accept(item)
    return study


def test_the_dataset_is_built_from_the_export_without_an_edit(finished: Study, tmp_path: Path) -> None:
    pictures, out = tmp_path / "pictures", tmp_path / "out"
    pictures.mkdir()
    out.mkdir()
    rng = np.random.default_rng(0)
    items = (finished.items[0], finished.items[3])
    for item in items:
        small = rng.integers(0, 255, (4, 4, 3), dtype=np.uint8)
        cv2.imwrite(str(pictures / item.id), cv2.resize(small, (32, 32)))
    some = [answer for answer in finished.answers if answer.item in {item.id for item in items}]
    files = PROTOCOL.export(items, some, out, {})
    assert [file.name for file in files] == ["tags.yaml", "history.parquet", "tasks.json"]
    result = build(pictures, tmp_path / "dataset", tasks=files[0], workers=1)
    assert (result.references, result.refused) == (2, {})
    rows = {row["source"]: row for row in read_table(tmp_path / "dataset" / "references.parquet")}
    assert rows["image 0.png"]["tasks"] == [
        "Pick up the blue cylinder",
        "Push the red cube to the left",
        "Place the tea cup on the mat",
        "Pour the bottle into the bowl",
        "Cover the peg with the lid",
    ]
    assert tuple(rows["image 3.png"]["tasks"]) == HOSTILE
    assert {name: rows["image 3.png"][name] for name in TAGS} == TAGS


def test_files_of_the_export(finished: Study, tmp_path: Path) -> None:
    files = PROTOCOL.export(finished.items, finished.answers, tmp_path, {"R01": "Ada", "E01": "Eve"})
    assert len(read_tags(files[0])) == 8
    history = read_table(files[1])
    first = [row for row in history if row["image"] == "image 0.png"]
    assert [row["event"] for row in first] == ["task"] * 5 + ["accept"] * 5
    assert first[0]["by"] == "Ada"
    assert first[0]["written_place"] == 1
    assert (first[5]["by"], first[5]["written_place"], first[5]["final_place"]) == ("Eve", 2, 1)
    assert (first[7]["text"], first[7]["previous"]) == ("Place the tea cup on the mat", TASKS[2])
    assert [row["reason"] for row in history if row["event"] == "remove"] == ["blurred"]
    found = json.loads(files[2].read_text(encoding="utf-8"))
    assert (found["accepted"], found["removed"], found["waiting_for_expert"]) == (8, 1, 1)
    # image 0: two neighbours exchanged twice, rho = 1 - 6 * 4 / 120 = 0.8, W = 0.9; the other seven agree
    assert found["kendall_w"]["value"] == pytest.approx((0.9 + 7) / 8)
    assert found["kendall_w"]["scenes"] == 4
    assert found["edited"]["value"] == pytest.approx(1 / 40)
    assert found["edited"]["interval"][0] <= 1 / 40 <= found["edited"]["interval"][1]
    assert found["places"]["Ada"] == [10, 0, 0, 0, 0]
    before = [file.read_bytes() for file in files]
    again = PROTOCOL.export(finished.items, finished.answers, tmp_path, {"R01": "Ada", "E01": "Eve"})
    assert [file.read_bytes() for file in again] == before


def test_without_an_accepted_image_the_numbers_say_what_is_missing(tmp_path: Path) -> None:
    item = an_item()
    files = PROTOCOL.export([item], [], tmp_path, {})
    assert [file.name for file in files] == ["history.parquet", "tasks.json"]
    found = json.loads(files[1].read_text(encoding="utf-8"))
    assert found["kendall_w"]["missing"] == "not enough yet: 1 accepted image more"
    assert found["waiting_for_subjects"] == 1


def test_pictures_of_two_folders_have_a_tag_file_each(tmp_path: Path) -> None:
    items = [an_item("kitchen/a.png"), an_item("office/a.png")]
    study = Study(*items)
    for item in items:
        study.write(item)
        study.accept(item)
    files = PROTOCOL.export(items, study.answers, tmp_path, {})
    assert [file.relative_to(tmp_path).as_posix() for file in files[:2]] == ["kitchen/tags.yaml", "office/tags.yaml"]
    assert list(read_tags(files[0])) == ["a.png"]


def test_answers_are_plain_json_and_come_back() -> None:
    for model, content in (
        (TaskAnswer, {"tags": TAGS, "task": TASKS[0]}),
        (TasksReview, {"decision": "back", "places": [0], "reason": "why"}),
    ):
        plain = validated(model, content, "answer").model_dump(mode="json")
        assert validated(model, json.dumps(plain), "answer") == validated(model, plain, "answer")


@pytest.mark.parametrize("seed", range(3))
def test_kendall_w_against_friedmans_test(seed: int) -> None:
    """W = chi2 / (m (n - 1)), ties corrected (Kendall and Babington Smith 1939)."""
    scores = np.random.default_rng(seed).integers(0, 6, (4, 7)).astype(float)
    assert kendall_w(scores) == pytest.approx(friedmanchisquare(*scores.T).statistic / (4 * 6), abs=1e-12)


def test_kendall_w_at_its_ends() -> None:
    assert kendall_w([[1, 2, 3, 4, 5]] * 3) == pytest.approx(1.0)
    assert kendall_w([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]]) == pytest.approx(0.0)
    assert kendall_w([[1, 1, 1], [2, 2, 2]]) is None
