"""Twins of a dataset: laws of the scores, known values, what is asked again, and the command."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lerobot_datasets import CAMERAS, FPS, FRAMES, ToGreen, episode_of, write_dataset
from merton.cli.main import app
from merton.decision.spread import likeness
from merton.errors import InputError, InvalidActionError
from merton.perception.distortion.setting import Setting
from merton_studies.lerobot.folder import LeRobotFolder
from merton_studies.twins.dataset.asked import Sample, ask, sample_of
from merton_studies.twins.dataset.page import finding, lines, write_page
from merton_studies.twins.dataset.scores import DatasetTwins, scored, spread_of

pytest.importorskip("av", reason="PyAV is not installed (the extra people)")
pytest.importorskip("pyarrow", reason="pyarrow is not installed (the extra dataset)")

DARK, LATE, JPEG = Setting("max_darken", 5), Setting("late", 5), Setting("jpeg", 1)
SAMPLE = Sample((0, 1, 2, 3), 4)
PER_EPISODE = len(range(0, FRAMES, 4))
CALLS: list[tuple[float, float]] = []


class Blind:
    """Answers from the state alone."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(2, 2) rows."""
        CALLS.append(tuple(observation["observation.state"]))
        return np.array([observation["observation.state"], observation["observation.state"] / 2])


class Noisy:
    """Answers by the seed alone."""

    def act(self, observation: dict[str, Any], noise_seed: int = 0) -> np.ndarray:
        """(1, 2) rows."""
        return np.random.default_rng(noise_seed).uniform(-0.05, 0.05, (1, 2))


class Fragile(ToGreen):
    """Has no answer to a dark picture."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """As `ToGreen`."""
        if observation[CAMERAS[0]].mean() < 40:
            raise RuntimeError("too dark")
        return super().act(observation)


class Still(ToGreen):
    """Stays in the dark."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """As `ToGreen`."""
        rows = super().act(observation)
        return rows * 0.0 if observation[CAMERAS[0]].mean() < 40 else rows


class Wide:
    """Answers in other units."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(1, 7) rows."""
        return np.zeros((1, 7))


class Lost:
    """Looks for a camera that the dataset does not have."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """Nothing."""
        return np.asarray(observation["observation.images.wrist"])


class RedX:
    """Answers where it sees the red square, in widths: a fault of time shows in it."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(1, 2) rows."""
        image = observation[CAMERAS[0]].astype(int)
        rows, columns = np.nonzero(image[..., 0] - image[..., 1] > 80)
        return np.array([[columns.mean() / image.shape[1], rows.mean() / image.shape[0]]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> LeRobotFolder:
    return LeRobotFolder(write_dataset(tmp_path_factory.mktemp("twins") / "toy", stored="image"))


def twins(folder: LeRobotFolder, policy: str, out: Path, *settings: Setting, sample: Sample = SAMPLE) -> DatasetTwins:
    out.mkdir(exist_ok=True)
    about, asked = ask(folder, f"test_dataset_twins:{policy}", settings, sample, out)
    return scored(folder, about, asked, settings, spread_of(folder))


def test_a_policy_that_sees_nothing_is_changed_by_nothing(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "Blind", tmp_path, DARK, LATE)
    assert {frame.to_clean for frame in found.frames} == {1.0}
    for score in found.scores:
        assert score.to_clean is not None
        assert (score.to_clean.value, score.to_clean.frames, score.to_clean.episodes) == (1.0, 4 * PER_EPISODE, 4)
        assert (score.to_chance, score.no_action) == (0.0, 0)
        assert score.worse is not None
        assert score.worse.value == 0.0
    assert found.floors.repeated is not None
    assert found.floors.repeated.value == 1.0
    assert found.floors.chance is not None
    assert found.floors.chance.value < 1.0


def test_scores_are_likenesses_in_the_units_of_the_demonstrations(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "Still", tmp_path, DARK)
    spread = spread_of(folder)
    every = np.concatenate([episode_of(number)[1] for number in range(6)])
    np.testing.assert_allclose(spread.width, np.quantile(every, 0.99, 0) - np.quantile(every, 0.01, 0))
    for frame in found.frames:
        states, actions, pictures = episode_of(frame.asked.episode)
        at = frame.asked.frame
        clean = ToGreen().act({CAMERAS[0]: pictures[CAMERAS[0]][at], "observation.state": states[at]})
        assert frame.to_clean == likeness(clean, np.zeros((4, 2)), spread), "it sees no green in the dark"
        assert frame.to_recorded == likeness(actions[at : at + 4], np.zeros((4, 2)), spread)
        assert frame.clean_to_recorded == likeness(actions[at : at + 4], clean, spread)
    (score,) = found.scores
    assert score.to_clean is not None
    assert score.to_clean.value == pytest.approx(np.mean([frame.to_clean for frame in found.frames]))
    assert found.floors.demonstrator is not None
    assert found.floors.demonstrator.value > 0.9
    assert score.worse is not None
    assert score.worse.interval.low > 0
    assert score.least is not None
    assert score.least.to_clean == min(frame.to_clean or 0 for frame in found.frames)


def test_a_spread_without_statistics_is_taken_from_all_frames(tmp_path: Path) -> None:
    folder = LeRobotFolder(write_dataset(tmp_path / "old", "v2.1", stored="image"))
    spread = spread_of(folder)
    every = np.concatenate([episode_of(number)[1] for number in range(6)])
    np.testing.assert_allclose(spread.width, np.quantile(every, 0.99, 0) - np.quantile(every, 0.01, 0), rtol=1e-6)


def test_quantiles_that_are_means_over_episodes_are_not_the_spread(tmp_path: Path) -> None:
    path = write_dataset(tmp_path / "toy", stored="image")
    wanted = spread_of(LeRobotFolder(path))
    stats = json.loads((path / "meta/stats.json").read_text())
    each = [np.quantile(episode_of(number)[1], (0.01, 0.99), axis=0) for number in range(6)]
    stats["action"] |= {"q01": np.mean(each, 0)[0].tolist(), "q99": np.mean(each, 0)[1].tolist()}  # as lerobot 0.6.1
    (path / "meta/stats.json").write_text(json.dumps(stats))
    np.testing.assert_array_equal(spread_of(LeRobotFolder(path)).width, wanted.width)
    assert (np.subtract(stats["action"]["q99"], stats["action"]["q01"]) < 0.9 * wanted.width).any(), "as they mislead"


def test_answers_of_other_weights_are_not_gone_on_with(
    folder: LeRobotFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "arm_of_mine.py"
    module.write_text("class Arm:\n    def act(self, observation):\n        return [[0.0, 0.0]]\n")
    (tmp_path / "out").mkdir()
    ask(folder, "arm_of_mine:Arm", (DARK,), Sample((0,), 4), tmp_path / "out")
    module.write_text(module.read_text().replace("0.0", "0.1"))
    with pytest.raises(InputError, match="holds twins with other policy_sha256"):
        ask(folder, "arm_of_mine:Arm", (DARK,), Sample((0,), 4), tmp_path / "out")


def test_a_policy_that_nothing_changes_is_said_to_be_unchanged(folder: LeRobotFolder, tmp_path: Path) -> None:
    sentence = finding(twins(folder, "Blind", tmp_path, DARK))
    assert sentence.startswith("No distortion changed the answers of test_dataset_twins:Blind")
    assert "changed its answers most" in finding(twins(folder, "Still", tmp_path / "still", DARK))


def test_recorded_actions_that_end_before_the_answer_are_drawn_shorter() -> None:
    drawn = str(lines([np.zeros(3), np.ones(5), np.ones(5)]))
    ends = [line.split()[-1].split(",")[0] for line in re.findall(r'points="([^"]+)"', drawn)]
    assert ends == ["150.0", "294.0", "294.0"], "two of four steps"


def test_a_fault_of_time_counts_frames(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "RedX", tmp_path, LATE, sample=Sample((2,), 5))
    for frame in found.frames:
        pictures = episode_of(2)[2][CAMERAS[0]]
        before = RedX().act({CAMERAS[0]: pictures[max(0, frame.asked.frame - 2)]})
        shown = frame.asked.shown[LATE].rows
        assert shown is not None
        np.testing.assert_array_equal(shown, before)
    assert found.floors.chance is None
    assert found.scores[0].to_chance is None


def test_a_policy_with_chance_gets_the_same_on_both_pictures(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "Noisy", tmp_path, JPEG)
    assert {frame.to_clean for frame in found.frames} == {1.0}
    assert found.floors.repeated is not None
    assert found.floors.repeated.value < 0.9


def test_no_action_is_counted_and_is_no_score(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "Fragile", tmp_path, DARK, JPEG)
    dark, jpeg = found.scores
    assert (dark.to_clean, dark.no_action, dark.least) == (None, 4 * PER_EPISODE, None)
    assert jpeg.to_clean is not None
    assert jpeg.no_action == 0
    assert "too dark" in found.frames[0].asked.shown[DARK].why
    assert "jpeg 1" in finding(found)
    assert "too dark" not in write_page(found, folder, tmp_path / "page.html").read_text()


def test_rows_of_another_length_are_no_answer(folder: LeRobotFolder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gives rows of 7 numbers, and an action of the data set has 2"):
        twins(folder, "Wide", tmp_path, DARK)


def test_a_policy_that_never_answers_ends_it(tmp_path: Path) -> None:
    folder = LeRobotFolder(write_dataset(tmp_path / "toy", episodes=1, stored="image"))
    (tmp_path / "out").mkdir()
    with pytest.raises(InvalidActionError, match=r"gave no action in any of 3 clean frames: .*KeyError"):
        ask(folder, "test_dataset_twins:Lost", (DARK,), Sample((0,), 4), tmp_path / "out")


def test_answers_that_are_there_are_not_asked_for_again(folder: LeRobotFolder, tmp_path: Path) -> None:
    first = twins(folder, "Blind", tmp_path, DARK)
    file = tmp_path / "asked.jsonl"
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][: len(lines[2]) // 2])  # killed in the middle of a line
    CALLS.clear()
    again = twins(folder, "Blind", tmp_path, DARK)
    assert len(CALLS) == 2 * (2 * PER_EPISODE + 1), "two episodes: each frame clean and dark, the first once more"
    assert file.read_bytes() == whole
    assert [one.to_clean for one in again.scores] == [one.to_clean for one in first.scores]
    with pytest.raises(InputError, match="holds twins with other distortions"):
        twins(folder, "Blind", tmp_path, JPEG)


@pytest.mark.parametrize(
    ("episodes", "every", "wanted"),
    [
        (None, None, Sample((0, 1, 2, 3, 4, 5), FPS)),
        ("0:2", 3, Sample((0, 1), 3)),
        ("4:", 1, Sample((4, 5), 1)),
        ("5, 1,1:3", 1, Sample((1, 2, 5), 1)),
    ],
)
def test_the_sample(folder: LeRobotFolder, episodes: str | None, every: int | None, wanted: Sample) -> None:
    assert sample_of(folder, episodes, every) == wanted


@pytest.mark.parametrize("text", ["6", "0:9", "a", "3:1", "-1"])
def test_a_wrong_sample_is_a_sentence(folder: LeRobotFolder, text: str) -> None:
    with pytest.raises(InputError, match="episodes"):
        sample_of(folder, text, None)


def test_the_command_writes_page_and_tables(folder: LeRobotFolder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["whatif", str(folder.path), "--policy", "test_dataset_twins:ToGreen", "--distort", "max_darken@5",
             "--distort", "torn@3", "--every", "6", "--out", str(out)]  # fmt: skip
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "No simulator took part" in found.output
    page = (out / "whatif.html").read_text()
    assert "nothing here says whether a task would have been done" in page
    assert page.count("data:image/jpeg;base64,") == 4
    about = json.loads((out / "twins.json").read_text())
    assert [(one["distortion"], one["to_clean"]["episodes"]) for one in about["settings"]] == [
        ("max_darken", 6),
        ("torn", 6),
    ]
    with (out / "twins.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 6 * 2 * 2
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before, "the same questions, other bytes"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--distort", "jpeg@3"], "name one with --policy, MODULE:CLASS"),
        (["--distort", "depth_holes@3", "--policy", "test_dataset_twins:Blind"], "is a fault of depth"),
        (["--distort", "jpeg@0", "--policy", "test_dataset_twins:Blind"], "with a level of 1 to 5"),
        (["--policy", "test_dataset_twins:Blind"], "name at least one --distort"),
    ],
)
def test_mistakes_of_the_command(folder: LeRobotFolder, tmp_path: Path, words: list[str], text: str) -> None:
    found = CliRunner().invoke(app, ["whatif", str(folder.path), "--out", str(tmp_path / "out"), *words])
    assert isinstance(found.exception, InputError)
    assert text in str(found.exception)


class Alike:
    """Answers nearly the same everywhere."""

    def act(self, observation: dict[str, Any]) -> np.ndarray:
        """(1, 2) rows."""
        return np.full((1, 2), observation[CAMERAS[0]].mean() * 1e-7)


def test_where_chance_is_1_there_is_no_share_of_the_way_to_it(folder: LeRobotFolder, tmp_path: Path) -> None:
    found = twins(folder, "Alike", tmp_path, DARK)
    assert found.floors.chance is not None
    assert 0.995 <= found.floors.chance.value < 1.0
    assert found.scores[0].to_chance is None
    assert "hardly differ from episode to episode" in " ".join(found.notes)


def test_the_columns_of_an_action_are_those_of_its_rows(tmp_path: Path) -> None:
    """Not those that a hand-written info.json declares, or leaves out."""
    toy = write_dataset(tmp_path / "toy", stored="image", episodes=2)
    info = json.loads((toy / "meta/info.json").read_text())
    del info["features"]["action"]["shape"]
    (toy / "meta/info.json").write_text(json.dumps(info))
    found = twins(LeRobotFolder(toy), "Blind", tmp_path / "out", DARK, sample=Sample((0, 1), 8))
    assert {frame.to_clean for frame in found.frames} == {1.0}


def test_an_action_that_is_not_finite_is_named(tmp_path: Path) -> None:
    toy = write_dataset(tmp_path / "toy", stored="image", episodes=2)
    file = toy / "data/chunk-000/file-000.parquet"
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(file)
    rows = table.column("action").to_pylist()
    rows[FRAMES + 5] = [float("nan"), 0.0]
    parquet.write_table(table.set_column(table.schema.get_field_index("action"), "action", arrow.array(rows)), file)
    with pytest.raises(InputError, match=r"'action' of episode 1, frame 5, is not finite"):
        spread_of(LeRobotFolder(toy))
