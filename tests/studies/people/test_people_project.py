"""Projects of people: what is refused and how, and the definition that answers belong to."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from merton.errors import InputError
from merton_studies.people.examples import write_example
from merton_studies.people.project import PROTOCOLS, SOURCES_OF, read_project
from merton_studies.people.source_settings import SOURCES

GOOD = {
    "name": "colors",
    "title": "Colors",
    "protocol": "quality",
    "items": "{images: {folder: pictures}}",
    "raters": "5",
}


def project_file(folder: Path, **changes: str | None) -> Path:
    """A project's file of GOOD with changes; None leaves a key out."""
    lines = [f"{key}: {value}" for key, value in {**GOOD, **changes}.items() if value is not None]
    file = folder / "project.yaml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_a_project_is_read(tmp_path: Path) -> None:
    loaded = read_project(project_file(tmp_path, deadline_utc="2026-12-01T18:00:00Z", ratings="2"))
    assert (loaded.project.most_raters, loaded.project.ratings, loaded.project.items.source) == (5, 2, "images")
    assert loaded.project.deadline == datetime(2026, 12, 1, 18, tzinfo=timezone.utc)
    assert loaded.record == tmp_path / "people.sqlite"
    assert loaded.media == tmp_path / "colors.media"


@pytest.mark.parametrize(
    "written", ["2026-12-01T20:00:00+02:00", '"2026-12-01T18:00:00"', "2026-12-01 18:00:00", '"2026-12-01T18:00Z"']
)
def test_a_deadline_is_a_time_of_utc(tmp_path: Path, written: str) -> None:
    assert read_project(project_file(tmp_path, deadline_utc=written)).project.deadline_utc == "2026-12-01T18:00:00Z"


def test_the_definition_is_of_what_answers_depend_on(tmp_path: Path) -> None:
    first = read_project(project_file(tmp_path))
    for harmless in ({"title": "Other"}, {"deadline_utc": "2026-12-01T18:00:00Z"}, {"contact": "me"}):
        assert read_project(project_file(tmp_path, **harmless)).sha256 == first.sha256
    for change in ({"seed": "1"}, {"ratings": "4"}, {"items": "{images: {folder: others}}"}, {"raters": "6"}):
        assert read_project(project_file(tmp_path, **change)).sha256 != first.sha256
    assert str(tmp_path) not in first.definition


def test_the_definition_has_no_names_of_people(tmp_path: Path) -> None:
    changes = {"protocol": "tasks", "ratings": "5", "experts": "[Eve]"}
    named = read_project(project_file(tmp_path, raters="[Ann, Ben, Cem, Dee, Fay]", **changes))
    assert not [name for name in ("Ann", "Eve") if name in named.definition]
    assert named.definition == read_project(project_file(tmp_path, raters="5", **changes)).definition


def test_every_protocol_has_sources_and_every_source_a_protocol() -> None:
    assert set(SOURCES_OF) == set(PROTOCOLS)
    assert {source for sources in SOURCES_OF.values() for source in sources} == set(SOURCES)


MALFORMED = {
    "no name": ({"name": None}, "name: is missing"),
    "a name that is no name": ({"name": "../x"}, "lower-case letters"),
    "a longer name than a file's": ({"name": "a" * 61}, "1 to 60"),
    "an empty title": ({"title": '""'}, "title: must have at least 1 character"),
    "an unknown protocol": ({"protocol": "qualty"}, "did you mean 'quality'"),
    "an unknown key": ({"rater": "5"}, "did you mean 'raters'"),
    "a key that stands twice": ({"seed": "1\nseed: 2"}, "seed"),
    "an alias": ({"title": "&a x\ncontact: *a"}, "aliases and tags are not allowed"),
    "no items": ({"items": None}, "items: is missing"),
    "items without a source": ({"items": "{}"}, "has no source"),
    "two sources": ({"items": "{images: {folder: a}, dataset: {folder: b}}"}, "has images and dataset"),
    "an unknown source": ({"items": "{image: {folder: a}}"}, "did you mean 'images'"),
    "a source without its settings": ({"items": "{images: {}}"}, "items.images.folder: is missing"),
    "a source of another protocol": ({"items": "{outputs: {table: a.csv}}"}, "it needs images or dataset"),
    "items as a list": ({"items": "[a, b]"}, "items: must be a mapping"),
    "no raters": ({"raters": "0"}, "raters: must be at least 1"),
    "an empty list of raters": ({"raters": "[]"}, "raters: must have at least 1 entry"),
    "a rater twice": ({"raters": "[Ann, Ben, Ann]"}, "raters, entry 3: 'Ann' stands there twice"),
    "a rater without a name": ({"raters": '[Ann, " "]'}, "raters, entry 2"),
    "a rater of two lines": ({"raters": '["Ann\\nBen"]', "ratings": "1"}, "one line"),
    "experts without a review": ({"experts": "[Eve]"}, "has no review"),
    "more ratings than raters": ({"ratings": "6"}, "is 6, but there are only 5 raters"),
    "half a rating": ({"ratings": "2.5"}, "ratings: must be a whole number"),
    "too many repeats": ({"repeats": "0.9"}, "repeats: must be at most 0.5"),
    "a share that is no number": ({"repeats": ".nan"}, "repeats: must be"),
    "four subjects": ({"protocol": "tasks", "ratings": "4"}, "ratings: must be 5"),
    "repeats of tasks": ({"protocol": "tasks", "ratings": "5", "repeats": "0.1"}, "not for the protocol tasks"),
    "gold of tasks": (
        {"protocol": "tasks", "ratings": "5", "items": "{images: {folder: a}, gold: g.yaml}"},
        "no right answer",
    ),
    "a fourth annotator": (
        {"protocol": "episodes", "ratings": "4", "items": "{videos: {folder: a}}"},
        "must be at most 3",
    ),
    "a top-up to less": ({"top_up": "{below: 0.5, most: 3}"}, "top_up.most: is 3; it must be more than ratings"),
    "a top-up by too many": ({"top_up": "{below: 0.5, most: 9}"}, "at most the number of raters"),
    "a day as deadline": ({"deadline_utc": "2026-12-01"}, "is no time; write it as 2026-12-01T18:00:00Z"),
    "a deadline in words": ({"deadline_utc": "tomorrow"}, "is no time"),
    "a record of another kind": ({"record": "mysql://host/name"}, "is no record"),
    "a huge text": ({"instructions": "x" * 5001}, "instructions: must have at most 5000 characters"),
    "blind as a word": ({"blind": "very"}, "blind: must be true or false"),
    "a lease without end": ({"lease_min": ".inf"}, "lease_min: must be"),
}


@pytest.mark.parametrize(("changes", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_project_gets_one_sentence(tmp_path: Path, changes: dict[str, str | None], reason: str) -> None:
    file = project_file(tmp_path, **changes)
    with pytest.raises(InputError) as refused:
        read_project(file)
    sentence = str(refused.value)
    assert reason in sentence
    assert sentence.startswith(f"{file}, line ")
    assert "\n" not in sentence
    assert len(sentence) < 600


def test_a_file_that_is_no_project_gets_one_sentence(tmp_path: Path) -> None:
    for content in (
        b"",
        b"\xff\xfe\x00",
        b"- a\n- b\n",
        b"a: [1",
        b"\x00",
        b"<html></html>",
        b"a: !!python/object:x {}",
    ):
        file = tmp_path / "project.yaml"
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"^[^\n]*project\.yaml[^\n]*$"):
            read_project(file)
    with pytest.raises(InputError, match="cannot read"):
        read_project(tmp_path / "missing.yaml")
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.mkdir()
    with pytest.raises(InputError, match=f"^{empty} is a folder: name a file$"):
        read_project(empty)
    other.mkdir()
    (other / "study.yaml").write_text("")
    with pytest.raises(InputError, match=rf"is a folder: name the file in it, such as {other}/study\.yaml$"):
        read_project(other)


def test_a_folder_is_read_by_its_project_file(tmp_path: Path) -> None:
    file = write_example("quality", tmp_path / "study")
    assert read_project(file.parent) == read_project(file)
