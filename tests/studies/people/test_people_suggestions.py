"""Labels with an agent's suggestions: what a page shows, what is stored, and the tables of an export."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton_studies.curation.people import read_suggested
from merton_studies.curation.suggestions import effects
from merton_studies.people.examples import write_example
from merton_studies.people.export import export_study
from merton_studies.people.ledger import Slot
from merton_studies.people.project import read_project
from merton_studies.people.protocols.labels import Labels
from merton_studies.people.sources import items_of
from merton_studies.people.study import open_study, recorded_study

HOLDS = "per_dimension: 8}"
PROPOSED = "question,dimension\n" + "".join(
    f"{name.lower()}-{seed:02d},{'Other' if seed == 0 else name}\n"
    for name in ("Counting", "Color") for seed in range(6)
)  # fmt: skip


def project(folder: Path, suggestions: str = "file: suggestions.csv, hidden: 0.5", table: str = PROPOSED) -> Path:
    """The example of labels with suggestions for the questions of two of its three dimensions."""
    file = write_example("labels", folder / "example")
    text = file.read_text()
    assert HOLDS in text
    file.write_text(text.replace(HOLDS, f"per_dimension: 8, suggestions: {{{suggestions}}}}}"))
    (file.parent / "suggestions.csv").write_text(table)
    return file


def test_a_suggestion_is_on_the_page_of_some_and_never_an_agents_name(tmp_path: Path) -> None:
    loaded, protocol = read_project(project(tmp_path)), Labels()
    items = items_of(loaded)
    of = {item.id: item for item in items}
    assert {item.facts.get("suggestion") for item in items if "place-" in item.facts["question"]} == {None}
    for item in items:
        if "suggestion" in item.facts:
            proposed = item.facts["assigned"] == "yes" and not item.facts["question"].endswith("00")
            assert item.facts["suggestion"] == ("yes" if proposed else "no")
    shown = 0
    pages = [(item, f"R{rater:02d}") for item in items if "suggestion" in item.facts for rater in range(40)]
    for item, rater in pages:
        views = [
            protocol.view(protocol.shown(item, Slot(rater, 1, item.id, kind, ""), 1), ())["suggestion"]
            for kind in ("design", "repeat", "gold")
        ]  # fmt: skip
        assert views[0] == views[1], "a repeat is as it was"
        assert views[0] in ("", of[item.id].facts["suggestion"])
        assert views[2] == "", "a gold item is without help"
        shown += bool(views[0])
    assert shown / len(pages) == pytest.approx(0.5, abs=0.06)  # 600 and more drawn: 3 standard deviations


def test_an_assignment_of_a_curation_is_a_table_of_suggestions(tmp_path: Path) -> None:
    items = items_of(read_project(project(tmp_path, "file: questions")))
    assert all(item.facts["suggestion"] == item.facts["assigned"] for item in items)


@pytest.mark.parametrize(
    ("suggestions", "table", "why"),
    [
        (
            "file: suggestions.csv",
            "question,dimension\nelse,Color\n",
            "has no suggestion for any question of the study",
        ),
        ("file: gone.csv", PROPOSED, "cannot read"),
        ("file: suggestions.csv", "question,label\na,b\n", "column 'dimension' is missing"),
        ("file: suggestions.csv, hidden: 1", PROPOSED, "hidden"),
    ],
    ids=["of other questions", "no file", "another column", "all hidden"],
)
def test_suggestions_that_cannot_be_used_are_refused(tmp_path: Path, suggestions: str, table: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        items_of(read_project(project(tmp_path, suggestions, table)))
    assert "\n" not in str(refused.value).strip()


def answered(file: Path) -> None:
    """Five raters answer all: who sees a suggestion keeps it but for every fourth; who sees none says yes."""
    study, number = open_study(file), 0
    for name in ("Ada", "Ben", "Cleo", "Dan", "Eve"):
        rater = study.ledger.register(name).id
        while (work := study.desk.work(rater)).state == "working":
            slot, number = work.slots[0], number + 1
            suggestion = study.desk.shown(slot).texts.get("suggestion", "")
            kept = suggestion if number % 4 else {"yes": "no", "no": "yes", "": ""}[suggestion]
            study.desk.answer(rater, slot.number, f"{number:032d}", {"verdict": kept or "yes"}, 2.0)
    study.close()


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text().splitlines()))


def test_an_export_has_labels_after_correction_and_the_numbers_that_curate_agreement_prints(tmp_path: Path) -> None:
    file = project(tmp_path)
    answered(file)
    out = tmp_path / "out"
    with recorded_study(file) as study:
        export_study(study.loaded, study.items, study.protocol, study.ledger, out)
        scenes = {item.facts["question"]: item.scene for item in study.items}
        facts = {item.id: item.facts for item in study.items}
        stored = [one.answer | facts[one.item] for one in study.ledger.answers() if one.kind == "design"]
    verdicts = rows(out / "verification.csv")
    assert len(verdicts) == len(stored) == 72
    for one in stored:
        assert ("shown" in one) == ("hidden" in one), "an item without a suggestion is stored as before"
    shown = [one for one in verdicts if one["shown"] == "yes"]
    assert sum(one["shown"] == "yes" for one in verdicts) == sum(one.get("shown", False) for one in stored) > 10
    assert rows(out / "unaided.csv") == [one for one in verdicts if one["shown"] != "yes"]
    found = json.loads((out / "suggestions.json").read_text())[-1]
    corrected = sum(one["verdict"] != one["suggestion"] for one in shown)
    assert found["name"] == "all"
    assert found["corrected"]["value"] == pytest.approx(corrected / len(shown))
    again = effects(read_suggested([out / "verification.csv"], scenes))[-1]
    assert json.loads(json.dumps(again.as_json())) == found
    for label in rows(out / "labels.csv"):
        yes, no = int(label["yes"]), int(label["no"])
        assert label["label"] == ("yes" if yes > no else "no")
        assert yes + no == 3
        changed = label["suggestion"] and label["label"] != label["suggestion"]
        assert label["corrected"] == ("" if not label["suggestion"] else "yes" if changed else "no")
    questions = str(file.parent / "questions")
    done = CliRunner().invoke(app, ["curate", "agreement", str(out / "verification.csv"), "--assignments", questions])
    assert done.exit_code == 0, done.output
    assert f"suggestions, all: {len(shown)} verdicts, corrected {again.corrected.shown}" in done.output
    assert f"anchoring {again.anchoring.shown}" in done.output
