"""The wrappers of Gymnasium environments: the pictures alone change, by condition, episode and environment."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")
# isort: split
import gymnasium
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from gym_cells import ACTION, ACTIONS, LENGTH, NESTED, PICTURE, POSITION, Cell, frames, leaves, same
from merton.episodes.shown import EpisodePictures
from merton.errors import InputError
from merton.gym import Distorted, DistortedVector
from merton.gym.found import find_pictures

BESIDE = spaces.Dict({"top": PICTURE, "beside": spaces.Tuple((spaces.Box(0, 255, (4, 48, 64, 3), np.uint8),))})
"""A picture, and a stack of them."""


def test_pictures_are_found_by_their_shape_in_any_nesting() -> None:
    found = {place.camera: (place.path, place.channels_first) for place in find_pictures(NESTED)}
    assert found == {
        "top": (("pixels", "top"), False),
        "wrist": (("pixels", "wrist"), True),
        "0": (("pair", 0), False),
    }
    assert [place.camera for place in find_pictures(PICTURE)] == ["pixels"]


def test_two_pictures_with_one_last_key_are_told_apart_by_all_keys() -> None:
    space = spaces.Dict({side: spaces.Dict({"rgb": PICTURE}) for side in ("left", "right")})
    assert [place.camera for place in find_pictures(space)] == ["left/rgb", "right/rgb"]
    assert [place.camera for place in find_pictures(space, ["right"])] == ["right/rgb"]


def test_only_pictures_change_and_the_space_still_holds_them() -> None:
    clean, env = frames(Cell(), 3), Distorted(Cell(), "gaussian_blur", 4)
    assert env.observation_space is env.env.observation_space
    for was, now in zip(clean, frames(env, 3), strict=True):
        assert env.observation_space.contains(now)
        changed = {name for name, array in leaves(now).items() if not np.array_equal(array, leaves(was)[name])}
        assert changed == {"top", "wrist", "0"}


def test_a_picture_is_distorted_as_upright_colour_whatever_its_layout() -> None:
    was, now = frames(Cell(), 3)[0], frames(Distorted(Cell(), "lens_blur", 3), 3)[0]
    pictures = EpisodePictures("lens_blur", 3)
    upright = np.ascontiguousarray(was["pixels"]["wrist"].transpose(1, 2, 0))
    np.testing.assert_array_equal(now["pixels"]["wrist"].transpose(1, 2, 0), pictures.show(0, "wrist", upright))


def test_level_0_passes_the_very_object() -> None:
    given: list[Any] = []

    class Kept(Cell):
        def _drawn(self) -> Any:
            given.append(super()._drawn())
            return given[-1]

    assert all(one is other for one, other in zip(frames(Distorted(Kept()), 1), given, strict=True))


def space_of(*shape: int, dtype: Any = np.uint8, high: float = 255) -> spaces.Box:
    return spaces.Box(0, high, shape, dtype)


@pytest.mark.parametrize(
    ("space", "sentence"),
    [
        (space_of(4, 48, 64, 3), "pixels is of another form than a picture.*inside of the one that makes it"),
        (space_of(48, 64, 3, dtype=np.float32, high=1), "pixels is of another form than a picture"),
        (spaces.Dict({"top": PICTURE, "side": space_of(3, 48, 64, dtype=np.float32)}), "side is of another form"),
        (space_of(84, 84, 1), "have no picture"),
    ],
)
def test_what_is_seen_and_is_no_picture_is_told(space: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        find_pictures(space)


def test_points_and_masks_pass() -> None:
    points = spaces.Box(-np.inf, np.inf, (48, 64, 3), np.float32)
    found = find_pictures(spaces.Dict({"top": PICTURE, "points": points, "mask": space_of(48, 64, 1)}))
    assert [place.camera for place in found] == ["top"]


def test_three_grey_pictures_of_three_instants_are_no_colours() -> None:
    grey = gymnasium.wrappers.GrayscaleObservation(Cell(PICTURE))
    stacked = gymnasium.wrappers.FrameStackObservation(grey, 3)
    assert find_pictures(stacked.observation_space), "by its shape alone it is a picture"
    with pytest.raises(InputError, match="FrameStackObservation is inside of the wrapper"):
        Distorted(stacked, "lens_blur", 3)


def test_a_schedule_without_an_end_is_refused() -> None:
    with pytest.raises(InputError, match=r"a schedule is a list of pairs.*cycle"):
        Distorted(Cell(), schedule=itertools.cycle([("lens_blur", 3)]))  # type: ignore[arg-type]


def test_keys_choose_pictures() -> None:
    was = frames(Cell(), 3)[0]
    for keys, expected in ((["top"], {"top"}), (["pixels"], {"top", "wrist"}), (["pair/0"], {"0"})):
        now = frames(Distorted(Cell(), "max_darken", 5, keys=keys), 3)[0]
        assert {name for name, array in leaves(now).items() if not np.array_equal(array, leaves(was)[name])} == expected


def test_a_reset_with_the_same_seed_shows_the_same_pictures_in_any_order() -> None:
    one, other = Distorted(Cell(), "white_noise", 3, seed=1), Distorted(Cell(), "white_noise", 3, seed=1)
    wanted = frames(one, 5)
    frames(other, 8)
    assert all(map(same, wanted, frames(other, 5)))
    assert not same(wanted[0], frames(Distorted(Cell(), "white_noise", 3, seed=2), 5)[0])


@pytest.mark.parametrize("schedule", [[("reference", 0), ("frozen", 5)], lambda n: ("frozen", 5 * (n % 2))])
def test_a_schedule_goes_by_episode_and_a_fault_of_time_begins_anew(schedule: Any) -> None:
    env = Distorted(Cell(), schedule=schedule)
    for episode in range(4):
        clean, seen = frames(Cell(), episode), frames(env, episode)
        assert same(seen[0], clean[0])
        expected = clean[0] if episode % 2 else clean[-1]
        np.testing.assert_array_equal(seen[-1]["pixels"]["top"], expected["pixels"]["top"])


def test_info_says_the_condition_and_attributes_pass_through() -> None:
    env = Distorted(Cell(render_mode="rgb_array"), schedule=[("reference", 0), ("late", 2)])
    env.reset(seed=0)
    _, info = env.reset()
    assert info["merton"] == {"distortion": "late", "level": 2.0, "episode": 1}
    assert env.step(ACTION)[4]["left"] == LENGTH - 1
    assert env.render().max() == LENGTH - 1
    assert isinstance(env.unwrapped, Cell)
    assert env.get_wrapper_attr("name") == "cell"


def test_a_specification_makes_the_wrapped_environment_again() -> None:
    gymnasium.register("merton/Cell-v0", entry_point=Cell)
    try:
        env = Distorted(gymnasium.make("merton/Cell-v0"), "white_noise", 2, seed=4)
        again = gymnasium.make(env.spec)
        assert same(frames(env, 1)[1], frames(again, 1)[1])
    finally:
        del gymnasium.registry["merton/Cell-v0"]


@pytest.mark.parametrize("name", ["white_noise", "out_of_order"])
def test_wrapped_in_a_vector_or_around_it_the_seeded_pictures_are_those_of_one_environment(name: str) -> None:
    inside = SyncVectorEnv([lambda: Distorted(Cell(), name, 3)] * 2)
    around = DistortedVector(SyncVectorEnv([Cell] * 2), name, 3)
    alone = [frames(Distorted(Cell(), name, 3), seed, LENGTH - 1) for seed in (7, 8)]
    for step in range(LENGTH):
        seen = [vector.reset(seed=7)[0] if step == 0 else vector.step(ACTIONS)[0] for vector in (inside, around)]
        assert same(*seen)
        for i in range(2):
            np.testing.assert_array_equal(seen[0]["pixels"]["wrist"][i], alone[i][step]["pixels"]["wrist"])


def test_processes_of_a_vector_carry_the_wrapper() -> None:
    processes = AsyncVectorEnv([lambda: Distorted(Cell(), "white_noise", 3)] * 2)
    try:
        here = SyncVectorEnv([lambda: Distorted(Cell(), "white_noise", 3)] * 2)
        assert same(processes.reset(seed=7)[0], here.reset(seed=7)[0])
        infos = processes.step(ACTIONS)[4]
        assert list(infos["merton"]["distortion"]) == ["white_noise"] * 2
    finally:
        processes.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_each_episode_of_a_vector_has_one_condition_in_either_mode_of_autoreset(mode: AutoresetMode) -> None:
    clean = SyncVectorEnv([Cell] * 2, autoreset_mode=mode)
    env = DistortedVector(
        SyncVectorEnv([Cell] * 2, autoreset_mode=mode), schedule=lambda n: ("max_darken", 5 * (n > 1))
    )
    clean.reset(seed=0)
    observation, infos = env.reset(seed=0)
    assert list(infos["merton"]["episode"]) == [0, 1]
    ends = 0
    for _ in range(2 * LENGTH):
        was, _, over, _, was_infos = clean.step(ACTIONS)
        observation, _, _, _, infos = env.step(ACTIONS)
        for i in range(2):
            is_dark = not np.array_equal(observation["pixels"]["top"][i], was["pixels"]["top"][i])
            assert is_dark == (infos["merton"]["level"][i] > 0) == (infos["merton"]["episode"][i] > 1)
            if over[i] and mode is AutoresetMode.SAME_STEP:
                ends += 1
                assert same(infos["final_obs"][i], was_infos["final_obs"][i]) == (ends <= 2)
    assert list(infos["merton"]["episode"]) == ([2, 3] if mode is AutoresetMode.NEXT_STEP else [4, 5])


def test_a_partial_reset_leaves_the_others_where_they_are() -> None:
    env = DistortedVector(SyncVectorEnv([Cell] * 2, autoreset_mode=AutoresetMode.DISABLED), "frozen", 5)
    first = env.reset(seed=0)[0]["pixels"]["top"].copy()
    env.step(ACTIONS)
    seen, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert not np.array_equal(seen["pixels"]["top"][0], first[0])
    np.testing.assert_array_equal(seen["pixels"]["top"][1], first[1])
    assert list(infos["_merton"]) == [True, False]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Distorted(Cell(), "lens_blurr", 3), "lens_blurr"),
        (lambda: Distorted(Cell(), "lens_blur", 6), "6"),
        (lambda: Distorted(Cell(), "lens_blur", 3, keys=["side"]), "no picture 'side'; choose from: 0, top, wrist"),
        (lambda: Distorted(Cell(), "lens_blur", 3, keys="top"), r"keys is a list of names, such as \['top'\]"),
        (lambda: Distorted(Cell(), "lens_blur", 3, keys=[]), "keys has no name"),
        (lambda: Distorted(Cell(BESIDE), "lens_blur", 3), "beside/0 is of another form.*from: top"),
        (lambda: Distorted(Cell(), "lens_blur", 3, schedule=[("late", 1)]), "either a distortion and its level"),
        (lambda: Distorted(Cell(), schedule=[]), "at least one pair"),
        (lambda: Distorted(Cell(), schedule=["late"]), "pair such as"),
        (lambda: Distorted(Cell(POSITION), "lens_blur", 3), "AddRenderObservation"),
        (lambda: Distorted(SyncVectorEnv([Cell]), "lens_blur", 3), "DistortedVector"),
        (lambda: DistortedVector(Cell(), "lens_blur", 3), "merton.gym.Distorted"),
        (lambda: Distorted(Cell(), "lens_blur", 3, seed=-1), "seed"),
    ],
)
def test_a_mistake_is_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()
