"""Films of trials: the layout, the clock, the path in the picture, and the trials that get none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_run import make_fake_run

from merton.errors import InputError
from merton.experiment import film, films
from merton.experiment.film import FilmSide, Moment
from merton.results.records import Outcome
from merton.world.observation import CameraView, Intrinsics


def side(moments: int, outcome: tuple[str, bool] = ("failure", False)) -> FilmSide:
    view = np.full((film.VIEW_PX, film.WIDTH_PX, 3), 120, np.uint8)
    seen = np.full((48, 64, 3), 60, np.uint8)
    trace = np.array([[10.0, 10.0], [200.0, 150.0]])
    shown = [Moment(view, trace[: 1 + (at > 0)], seen, at) for at in range(moments)]
    return FilmSide("undistorted", shown, "the red cube, ü", outcome)


def test_both_sides_run_on_one_clock_and_the_last_picture_stands() -> None:
    pictures = list(film.frames("pour", [side(3), side(5)], 1.0, "note"))
    ending = round(film.ENDING_S * film.RATE_HZ)
    assert len(pictures) == 4 + ending
    assert {picture.shape for picture in pictures} == {pictures[0].shape}
    height, width, _ = pictures[0].shape
    assert (height % 2, width) == (0, 2 * (film.WIDTH_PX + 2 * film.MARGIN_PX))
    assert all(np.array_equal(picture, pictures[-1]) for picture in pictures[4:])
    assert not np.array_equal(pictures[3], pictures[4]), "the outcome stands at the end alone"


def test_the_path_is_drawn_into_a_copy_of_the_view() -> None:
    one = side(2)
    picture = list(film.frames("pour", [one], 1.0, ""))[1]
    assert (picture == film.UNDISTORTED).all(axis=2).any()
    assert (one.moments[1].view == 120).all()


@pytest.mark.parametrize(("duration_s", "speed"), [(2.0, 1.0), (9.0, 1.0), (9.4, 1.5), (18.0, 2.0), (40.0, 4.5)])
def test_a_longer_trial_is_shown_faster(duration_s: float, speed: float) -> None:
    assert film.speed_of(duration_s) == speed


def test_a_point_ahead_of_a_camera_is_in_the_middle_of_its_view() -> None:
    view = CameraView("side", np.zeros((4, 6, 3), np.uint8), None, Intrinsics(6, 4, 5.0, 5.0, 2.5, 1.5), np.eye(4))
    points = np.array([[0.0, 0.0, 1.0], [0.2, 0.0, 1.0], [0.0, 0.1, 0.5]])
    np.testing.assert_allclose(films._projected(view, points), [[2.5, 1.5], [3.5, 1.5], [2.5, 2.5]])


def test_a_film_has_a_known_ending_and_a_fault_of_the_infrastructure_none(tmp_path: Path) -> None:
    records = make_fake_run(tmp_path / "run", distortions=("jpeg",), tasks=("pick",))
    with pytest.raises(InputError, match=r"must end in .webp or .mp4"):
        films.make_films(tmp_path / "run", records[:1], tmp_path / "film.gif")
    fault = replace(records[0], outcome=Outcome.INFRASTRUCTURE)
    assert "there is nothing to film" in films.make_film(tmp_path / "run", fault, tmp_path / "film.webp")


def test_films_that_are_there_stay(tmp_path: Path) -> None:
    records = make_fake_run(tmp_path / "run", distortions=("jpeg",), tasks=("pick",))[:1]
    place = films.film_path(tmp_path / "run", records[0].id)
    place.parent.mkdir()
    place.write_bytes(b"made before")
    made, left_out = films.make_films(tmp_path / "run", records)
    assert (made, left_out, place.read_bytes()) == ([place.resolve()], [], b"made before")
