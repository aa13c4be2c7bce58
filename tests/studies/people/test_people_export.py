"""The page of statistics, `merton people stats` and `merton people export`."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import planted_ratings as planted
import pytest
from PIL import Image

from merton.cli.main import app
from merton.errors import InputError
from merton.statistics.alpha import krippendorff_alpha
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Ledger, Slot
from merton_studies.people.project import Project, read_project
from merton_studies.people.protocol import Scale
from merton_studies.people.sources import items_of
from merton_studies.people.statistics import Summary, summary
from merton_studies.people.statistics_page import page, style_sheet

HOSTILE = "<script>alert(1)</script> =HYPERLINK(1)"


class Both(planted.Plain):
    """A score and a word."""

    criteria: ClassVar[Mapping[str, Scale]] = {"score": "ordinal", "word": "nominal"}

    def values(self, item: Item, answer: object) -> dict[str, float | str]:
        assert isinstance(answer, dict)
        return {"score": float(answer["score"]), "word": answer["word"]}


def project(**settings: object) -> Project:
    made = {"name": "plain", "title": HOSTILE, "protocol": "quality", "items": {"images": {"folder": "x"}}, "raters": 5}
    return Project.model_validate({**made, **settings})


@pytest.fixture(scope="module")
def found() -> Summary:
    """Five raters, one of whom always gives the same answer; a hostile title and group."""
    table = planted.graded(24, 4, 2)
    table["R05"] = [3.0] * 24
    things = [replace(item, facts={"task": HOSTILE if place % 2 else "pick", "model": "secret"})
              for place, item in enumerate(planted.items(24, 2))]  # fmt: skip
    return summary(project(), things, Both(), planted.answers(table), "f" * 64)


class Text(HTMLParser):
    """The text of a page, and its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.attributes = "", [], []  # type: ignore[var-annotated]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_the_numbers_and_runs_nothing(found: Summary) -> None:
    shown = Text(page(found))
    assert "script" not in shown.tags
    assert HOSTILE in shown.text
    (score, word) = sorted(found.agreements, key=lambda one: one.criterion)
    for one in (score.alpha, word.alpha):
        assert one.value is not None
        assert f"{one.value:.2f}".replace("-", "−") in shown.text
    assert "always the same answer" in shown.text
    assert "score, word: not enough yet: 6 more items with two ratings, 8 more scenes." in shown.text
    assert "secret" not in page(found)
    labels = [value for name, value in shown.attributes if name == "aria-label"]
    assert score.alpha.shown in labels


def test_a_server_can_send_the_style_apart(found: Summary) -> None:
    html = page(found, "/page/statistics.css")
    shown = Text(html)
    assert "style" not in shown.tags
    assert not [name for name, _ in shown.attributes if name == "style"]
    assert ("href", "/page/statistics.css") in shown.attributes
    used = {name for key, value in shown.attributes if key == "class" and value for name in value.split()}
    assert {name for name in used if f".{name}" not in style_sheet()} == set()


def test_a_page_without_answers() -> None:
    html = page(summary(project(), planted.items(3), Both(), []))
    assert "There is no answer yet." in html
    assert "30 more items with two ratings, 20 more scenes" in html


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of six pictures in three scenes, with the answers of three raters, one of whom took one back."""
    folder = tmp_path_factory.mktemp("study")
    for place in range(6):
        scene = folder / "pictures" / f"s{place % 3}"
        scene.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (40 * place, 0, 0)).save(scene / f"secret-model-{place}.png")
    file = folder / "project.yaml"
    file.write_text(
        "name: small\ntitle: Small\nprotocol: quality\nitems: {images: {folder: pictures}}\nraters: 3\nratings: 3\n"
    )
    loaded = read_project(file)
    items = items_of(loaded)
    with Ledger(loaded.record, loaded.project.name, loaded.definition) as ledger:
        for who, name in enumerate(("Ada", "=SUM(1)", "Émile <b>")):
            rater = ledger.register(name)
            ledger.hand_out([Slot(rater.id, n, item.id, "design", planted.WHEN) for n, item in enumerate(items, 1)])
            for n, item in enumerate(items, 1):
                score = 1 + (n * (1 + (who == 1)) + who // 2) % 5
                said = Answer(f"{who}-{n}", rater.id, n, item.id, "design", {"score": score}, 2.0, planted.WHEN)
                if (who, n) == (0, 1):
                    ledger.save(replace(said, id="first", answer={"score": 5}))
                    ledger.undo(rater.id, "first", "undo")
                ledger.save(said)
    return file


def run(*words: object) -> None:
    app(["people", *map(str, words)], standalone_mode=False)


def test_stats_are_those_of_the_answers(study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run("stats", study, "--json", "--out", tmp_path / "page.html")
    told = json.loads(capsys.readouterr().out)
    rows = [[float(1 + (n * (1 + (who == 1)) + who // 2) % 5) for who in range(3)] for n in range(1, 7)]
    loaded = read_project(study)
    scenes = [item.scene for item in items_of(loaded)]
    expected = krippendorff_alpha(rows, "interval", scenes, loaded.project.seed)
    (one,) = told["agreements"]
    assert one["alpha"]["value"] == pytest.approx(expected.value, abs=1e-12)
    assert one["alpha"]["interval"] == pytest.approx(expected.interval, abs=1e-12)
    assert (told["answers"], told["complete"], told["definition_sha256"]) == (18, 6, loaded.sha256)
    assert "secret-model" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    run("stats", study)
    said = capsys.readouterr().out
    assert "18 answers of 3 raters; 6 of 6 items complete" in said
    assert "not enough yet: 24 more items with two ratings, 17 more scenes" in said


def test_an_export_has_no_names_unless_they_are_asked_for(study: Path, tmp_path: Path) -> None:
    for out, options in (("plain", []), ("again", []), ("named", ["--names"])):
        run("export", study, "--out", tmp_path / out, *options)
    files = {path.name for path in (tmp_path / "plain").iterdir()}
    assert {"every_rating.csv", "answers.jsonl", "statistics.json", "statistics.html", "export.json"} < files
    for path in (tmp_path / "plain").iterdir():
        content = path.read_bytes()
        assert content == (tmp_path / "again" / path.name).read_bytes()
        assert not re.search(rb"Ada|SUM|mile", content), path.name
    with (tmp_path / "named" / "every_rating.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["rater"] for row in rows} == {"Ada", "'=SUM(1)", "Émile <b>"}  # no spreadsheet runs the second
    assert len(rows) == 18
    lines = [json.loads(line) for line in (tmp_path / "plain" / "answers.jsonl").read_text("utf-8").splitlines()]
    assert [line["id"] for line in lines if line["undone"]] == ["first"]
    about = json.loads((tmp_path / "plain" / "export.json").read_text())
    assert set(about["sha256"]) == files - {"export.json"}
    for name, sha256 in about["sha256"].items():
        assert hashlib.sha256((tmp_path / "plain" / name).read_bytes()).hexdigest() == sha256
    with pytest.raises(InputError, match="plain has files already"):
        run("export", study, "--out", tmp_path / "plain")


def test_a_study_without_answers_is_not_exported(study: Path, tmp_path: Path) -> None:
    other = study.with_name("other.yaml")
    other.write_text(study.read_text().replace("name: small", "name: other"))
    with pytest.raises(InputError, match="other"):
        run("stats", other)
    with pytest.raises(InputError, match="other"):
        run("export", other, "--out", tmp_path / "out")
    loaded = read_project(other)
    Ledger(loaded.record, loaded.project.name, loaded.definition).close()
    with pytest.raises(InputError, match="the study 'other' has no answers yet"):
        run("export", other, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    return importlib.import_module("people_coverage")


def test_intervals_hold_what_is_known(coverage: ModuleType) -> None:
    """Of 24 studies a true 95 % holds fewer than 19 in one of 500 cases; 500 studies are simulated by the tool."""
    coverage.TEAMS, coverage.MANY = 1, 50_000
    held = coverage.coverage(coverage.Size(20, 1, 3, 3), 24)
    assert len(held) == 10
    assert {name: part for name, (part, whole) in held.items() if part < 19 or whole < 24} == {}


def test_planted_careless_raters_are_found(coverage: ModuleType) -> None:
    seen = coverage.detection(coverage.Crew(40, 5, "ordinal"), 6)
    marked, _, careful = seen[""]
    assert careful > 30
    assert marked <= 2
    for kind in ("random", "constant", "middle"):
        assert seen[kind][0] >= seen[kind][2] - 1, kind
    assert sum(seen[kind][2] for kind in coverage.CARELESS) >= 6
