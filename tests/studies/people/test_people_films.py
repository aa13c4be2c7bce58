"""Films of a run's trials: what the arm did as it was recorded, and films with defects whose scores are known."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import one_process
import pytest

from merton.config import load
from merton.errors import InputError
from merton.experiment import filming
from merton.experiment.run import RunDirectory
from merton.perception.images import decode_image
from merton.recording import video as encoding
from merton.recording.video import write_video
from merton_studies.people.media import films
from merton_studies.people.media.films import make_films
from merton_studies.people.media.planted import RIGHT_ANSWERS
from merton_studies.people.media.reel import frames_of
from merton_studies.people.media.video import reel_of_video
from merton_studies.people.protocols.episodes import EpisodeAnswer, suggested
from merton_studies.people.sources.reading import GoldAnswers
from runs import undisturbed_run

pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
EXPERIMENT = """
name: filmed
agents: [{id: oracle, vla: oracle}, {id: hold, vla: hold}]
tasks: [place]
distortions: [jpeg]
levels: [0, 5]
scenes: 1
"""


@pytest.fixture(scope="module")
def run(renders: None, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return undisturbed_run(tmp_path_factory.mktemp("filmed"), EXPERIMENT)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One picture a second, and no further process: quick."""
    monkeypatch.setattr(filming, "FILM_HZ", 1.0)
    one_process.in_this_process(monkeypatch, films)


def last_frame(file: Path, folder: Path) -> np.ndarray:
    return decode_image(list(frames_of(reel_of_video(file, folder).file))[-1]).astype(int)


def rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "videos.csv").read_text().splitlines()))


@pytest.mark.usefixtures("renders")
@pytest.mark.usefixtures("in_this_process")
def test_planted_films_are_what_their_scores_say(run: RunDirectory, tmp_path: Path) -> None:
    made = make_films(run.path, tmp_path / "out", 10, planted=True)
    assert made.left_out == ()
    assert set(made.teams) == set(RIGHT_ANSWERS)
    assert made.films == 1 + len(RIGHT_ANSWERS)
    file = {
        row["team"]: tmp_path / "out" / row["team"] / row["task"] / f"{row['video']}.mp4"
        for row in rows(tmp_path / "out")
    }
    assert file["faithful"].read_bytes() == file["reference"].read_bytes(), "the same pictures, the same bytes"
    ends = {team: last_frame(path, tmp_path) for team, path in file.items()}
    for team, answer in RIGHT_ANSWERS.items():
        differing = (np.abs(ends[team] - ends["reference"]).max(axis=2) > 40).sum()
        assert (differing < 60) == (team in ("faithful", "warped")), (team, differing)
        assert EpisodeAnswer.model_validate(answer).score == answer["score"]
        assert suggested(bool(answer["same_outcome"]), answer["defects"]) == answer["score"]
    gold = load(tmp_path / "out" / "gold.yaml", GoldAnswers).root
    assert {name.partition("/")[0]: answer["score"] for name, answer in gold.items()} == {
        row["team"]: int(row["score"]) for row in rows(tmp_path / "out") if row["score"]
    }


def test_a_project_reads_the_right_answers_of_two_films_with_one_defect(tmp_path: Path) -> None:
    file = tmp_path / "gold.yaml"
    file.write_bytes(
        films.gold_answers([("reference", "place", "a.0"), ("warped", "place", "a.0"), ("warped", "pick", "a.0")])
    )
    answers = load(file, GoldAnswers).root
    assert set(answers) == {"warped/place/a.0", "warped/pick/a.0"}
    assert {answer["score"] for answer in answers.values()} == {2}


@pytest.mark.usefixtures("in_this_process")
def test_films_of_a_run_stand_beside_their_references_and_go_on(run: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert make_films(run.path, out, 10, planted=False).teams == ("jpeg.5",)
    assert [(row["team"], row["video"], row["scene"]) for row in rows(out)] == [
        ("jpeg.5", "oracle.0", "place.0"),
        ("reference", "oracle.0", "place.0"),
    ]
    whole = {path: path.read_bytes() for path in out.rglob("*.mp4")}
    (out / "jpeg.5/place/oracle.0.mp4").unlink()  # as if it had been interrupted
    make_films(run.path, out, 10, planted=False)
    assert {path: path.read_bytes() for path in out.rglob("*.mp4")} == whole
    with pytest.raises(InputError, match="a set of films with other planted"):
        make_films(run.path, out, 10, planted=True)


@pytest.mark.usefixtures("in_this_process")
def test_a_trial_that_goes_another_way_is_not_shown(run: RunDirectory, tmp_path: Path) -> None:
    detail = run.path / "trials" / "oracle.place.0.reference.0" / "trial.json"
    kept = detail.read_text()
    content = json.loads(kept)
    content["path"][-1][2] += 0.001
    detail.write_text(json.dumps(content))
    try:
        with pytest.raises(InputError, match=r"oracle\.place\.0\.reference\.0 goes another way"):
            make_films(run.path, tmp_path / "out", 10, planted=False)
    finally:
        detail.write_text(kept)
    assert list((tmp_path / "out").rglob("*.mp4")) == []


def test_only_an_empty_folder_is_filled(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="neither empty nor a set of films"):
        make_films(run.path, tmp_path, 10, planted=False)


@pytest.mark.parametrize("encoder", ["libx264", "mpeg4", "mjpeg"])
def test_every_encoder_writes_what_is_read_again(encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "ENCODERS", {"no-such-encoder": {}, encoder: encoding.ENCODERS[encoder]})
    pictures = [np.full((48, 64, 3), shade, np.uint8) for shade in (30, 120, 210)]
    write_video(tmp_path / "a.mp4", pictures, 10.0)
    reel = reel_of_video(tmp_path / "a.mp4", tmp_path)
    assert (reel.frames, reel.rate_hz) == (3, 10.0)
    for content, picture in zip(frames_of(reel.file), pictures, strict=True):
        assert abs(decode_image(content).mean() - picture.mean()) < 5
