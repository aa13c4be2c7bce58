"""The policy type `merton` inside LeRobot: where it distorts, and that it changes nothing else."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (the extra models)")
pytest.importorskip("lerobot", reason="LeRobot is not installed: it needs an environment of its own")
pytest.importorskip("gymnasium", minversion="1.1", reason="gymnasium 1.1 or later is not installed (the extra gym)")
sys.path.insert(0, str(Path(__file__).parents[3] / "src/lerobot_policy_merton"))
# isort: split
import torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.envs.utils import preprocess_observation
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from lerobot.policies.factory import make_pre_post_processors
from lerobot.processor import PolicyProcessorPipeline
from lerobot_policy_merton import DistortPicturesStep, MertonConfig
from lerobot_policy_merton.modeling_merton import MertonPolicy, close, one_sentence
from lerobot_policy_merton.processor_merton import distorted, pixels_of

from merton.episodes.folder import EpisodesFolder
from merton.episodes.shown import EpisodePictures
from merton.errors import InputError
from merton.models.checkpoints import fingerprint_of

SIZE = 96
RNG = np.random.default_rng(0)


def observation(count: int = 1) -> dict[str, Any]:
    """A batch of observations as lerobot-eval makes it of PushT's."""
    pixels = RNG.integers(0, 256, (count, SIZE, SIZE, 3), np.uint8)
    return {
        **preprocess_observation({"pixels": pixels, "agent_pos": np.full((count, 2), 99.0)}),
        "task": ["push"] * count,
    }


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ACT of PushT with random weights and its pipelines, as lerobot saves them."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("act") / "tiny-act"
    config = ACTConfig(
        input_features={
            "observation.image": PolicyFeature(FeatureType.VISUAL, (3, SIZE, SIZE)),
            "observation.state": PolicyFeature(FeatureType.STATE, (2,)),
        },
        output_features={"action": PolicyFeature(FeatureType.ACTION, (2,))},
        device="cpu", pretrained_backbone_weights=None, dim_model=32, dim_feedforward=32, n_heads=2,
        n_encoder_layers=1, chunk_size=4, n_action_steps=4, use_vae=False,
    )  # fmt: skip
    wide = {"mean": torch.full((2,), 256.0), "std": torch.full((2,), 100.0)}
    grey = {"mean": torch.full((3, 1, 1), 0.5), "std": torch.full((3, 1, 1), 0.25)}
    pipelines = make_act_pre_post_processors(
        config, {"observation.image": grey, "observation.state": wide, "action": wide}
    )
    for part in (ACTPolicy(config), *pipelines):
        part.save_pretrained(folder)
    return folder


def policy(wrapped: Path, **options: Any) -> MertonPolicy:
    """The policy type merton around the ACT."""
    return MertonPolicy(MertonConfig(device="cpu", wrapped=str(wrapped), **options))


def plain_actions(wrapped: Path, batches: list[dict[str, Any]]) -> list[np.ndarray]:
    """The actions of the ACT as lerobot-eval asks for them."""
    act = ACTPolicy.from_pretrained(wrapped)
    before, after = make_pre_post_processors(act.config, pretrained_path=str(wrapped))
    act.reset()
    with torch.inference_mode():
        return [after(act.select_action(before(batch))).numpy() for batch in batches]


def actions(merton: MertonPolicy, batches: list[dict[str, Any]]) -> list[np.ndarray]:
    """Its actions in one episode."""
    merton.reset()
    with torch.inference_mode():
        return [merton.select_action(batch).numpy() for batch in batches]


def test_every_value_of_a_pixel_survives_the_way_through_floats() -> None:
    pixels = np.arange(256 * 3, dtype=np.uint32).astype(np.uint8).reshape(1, 16, 16, 3)
    tensor = preprocess_observation({"pixels": pixels})["observation.image"]
    np.testing.assert_array_equal(pixels_of(tensor[0]), pixels[0])


def test_distorting_lerobots_tensor_is_distorting_the_picture_of_the_environment() -> None:
    pixels = RNG.integers(0, 256, (2, SIZE, SIZE, 3), np.uint8)
    pictures = EpisodePictures("lens_blur", 4)
    before = preprocess_observation({"pixels": np.stack([pictures.show(0, "image", one) for one in pixels])})
    after = distorted(
        preprocess_observation({"pixels": pixels}),
        lambda i, given: {"image": pictures.show(0, "image", given["image"])},
    )
    assert torch.equal(before["observation.image"], after["observation.image"])


def test_undistorted_tensors_are_the_very_same() -> None:
    batch = observation(2)
    shown = distorted(batch, lambda i, given: given)
    assert all(shown[key] is batch[key] for key in batch)


def test_cameras_whose_keys_end_alike_are_all_shown() -> None:
    picture = observation()["observation.image"]
    batch = {f"observation.images.{side}.rgb": picture for side in ("left", "right")}
    seen: set[str] = set()
    shown = distorted(batch, lambda i, given: seen.update(given) or {key: pixels // 2 for key, pixels in given.items()})
    assert seen == set(batch)
    assert not any(torch.equal(shown[key], picture) for key in batch)


def test_a_normalised_picture_is_refused() -> None:
    with pytest.raises(InputError, match="before it is normalised"):
        pixels_of(torch.full((3, 4, 4), 1.5))
    with pytest.raises(InputError, match=r"of 0 \.\. 1"):
        pixels_of(torch.zeros((3, 4, 4), dtype=torch.uint8))


def test_at_level_0_the_actions_are_those_of_the_wrapped_policy(wrapped: Path) -> None:
    batches = [observation(2) for _ in range(6)]
    for one, other in zip(actions(policy(wrapped), batches), plain_actions(wrapped, batches), strict=True):
        np.testing.assert_array_equal(one, other)


def test_cameras_choose_by_the_last_part_of_a_key(wrapped: Path) -> None:
    batches = [observation()]
    blurred = {"distortion": "max_darken", "level": 5}
    plain = plain_actions(wrapped, batches)[0]
    assert not np.array_equal(actions(policy(wrapped, cameras=["image"], **blurred), batches)[0], plain)
    np.testing.assert_array_equal(actions(policy(wrapped, cameras=["top"], **blurred), batches)[0], plain)


def test_the_question_about_the_clean_picture_leaves_the_episode_as_it_is(wrapped: Path, tmp_path: Path) -> None:
    batches, blurred = [observation() for _ in range(6)], {"distortion": "lens_blur", "level": 5}
    alone = actions(policy(wrapped, **blurred), batches)
    merton = policy(wrapped, **blurred, run=str(tmp_path / "run"), results=str(tmp_path / "eval_info.json"))
    for one, other in zip(actions(merton, batches), alone, strict=True):
        np.testing.assert_array_equal(one, other)
    results = tmp_path / "eval_info.json"
    results.write_text(json.dumps({"per_task": [{"metrics": {"successes": [True]}}]}), encoding="utf-8")
    assert merton._rollouts.close(results) == 1
    (trial,) = EpisodesFolder.read(tmp_path / "run").episodes
    answers = trial.end["answers"]
    np.testing.assert_allclose(answers[0][1], plain_actions(wrapped, batches[:1])[0], rtol=1e-6)
    np.testing.assert_allclose(answers[0][2], alone[0], rtol=1e-6)


def test_a_step_of_a_chunk_has_no_clean_answer(wrapped: Path, tmp_path: Path) -> None:
    """The action comes from the pictures of an earlier step: a copy would give the same one, a likeness of 1."""
    design, results = tmp_path / "design.yaml", tmp_path / "eval_info.json"
    design.write_text("{name: often, distortions: [lens_blur], levels: [5], clean_every: 2}", encoding="utf-8")
    options = {"distortion": "lens_blur", "level": 5, "design": str(design), "results": str(results)}
    merton = policy(wrapped, **options, run=str(tmp_path / "run"))
    batches = [observation() for _ in range(6)]
    actions(merton, batches)
    results.write_text(json.dumps({"per_task": [{"metrics": {"successes": [True]}}]}), encoding="utf-8")
    merton._rollouts.close(results)
    (trial,) = EpisodesFolder.read(tmp_path / "run").episodes
    assert [(step, clean is not None) for step, clean, _ in trial.end["answers"]] == [(0, True), (2, False), (4, True)]


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The exit codes with which the process would have ended."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    return codes


def test_results_that_are_not_there_are_a_sentence_and_an_exit_code_when_the_process_ends(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], exits: list[int]
) -> None:
    merton = policy(wrapped, run=str(tmp_path / "run"), results=str(tmp_path / "eval_info.json"))
    actions(merton, [observation()])
    close(merton._rollouts, tmp_path / "eval_info.json")
    assert "eval_info.json" in capsys.readouterr().err
    assert exits == [1]
    assert EpisodesFolder.read(tmp_path / "run").records() == []


def test_episodes_that_the_record_has_already_are_a_sentence_and_an_exit_code(
    wrapped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], exits: list[int]
) -> None:
    results = tmp_path / "eval_info.json"
    for codes in ([], [1]):
        merton = policy(wrapped, run=str(tmp_path / "run"), results=str(results))
        actions(merton, [observation()])
        results.write_text(json.dumps({"per_task": [{"metrics": {"successes": [True]}}]}), encoding="utf-8")
        close(merton._rollouts, results)
        assert exits == codes
    assert "recorded no episode: the run run has their results already" in capsys.readouterr().err


def test_the_record_names_the_checkpoint_and_its_hash_but_no_path(wrapped: Path, tmp_path: Path) -> None:
    merton = policy(wrapped, run=str(tmp_path / "run"), results=str(tmp_path / "eval_info.json"))
    merton._rollouts.run.close()
    text = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    assert json.loads(text)["source"] == {
        "protocol": "lerobot",
        "harness": "lerobot-eval",
        "policy": "tiny-act",
        "weights": fingerprint_of(wrapped),
    }
    assert str(wrapped.parent) not in text


def test_a_run_of_another_design_is_refused(wrapped: Path, tmp_path: Path) -> None:
    one, other = (tmp_path / f"{name}.yaml" for name in ("one", "other"))
    for file in (one, other):
        file.write_text(f"{{name: {file.stem}, distortions: [lens_blur], levels: [5]}}", encoding="utf-8")
    options = {"run": str(tmp_path / "run"), "results": str(tmp_path / "eval_info.json")}
    policy(wrapped, design=str(one), **options)._rollouts.run.close()
    with pytest.raises(InputError, match="has another design than"):
        policy(wrapped, design=str(other), **options)
    policy(wrapped, design=str(one), **options)._rollouts.run.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"level": 3}, "needs --policy.distortion"),
        ({"run": "runs/x"}, "--policy.run needs --policy.results"),
        ({"run": "runs/x", "results": __file__ + "/eval_info.json"}, "can be no file"),
        ({"run": "runs/x", "results": str(Path(__file__).parent)}, "can be no file"),
        ({"distortion": "lens_blurr", "level": 3}, "lens_blurr"),
    ],
)
def test_a_mistake_is_one_sentence(
    wrapped: Path, options: dict[str, Any], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=sentence) as mistake:
        policy(wrapped, **options)
    assert sys.excepthook is one_sentence
    sys.excepthook(mistake.type, mistake.value, mistake.tb)
    assert capsys.readouterr().err == f"merton: {mistake.value}\n"


def test_a_step_of_a_pipeline_is_saved_and_loaded_with_it(tmp_path: Path) -> None:
    step = DistortPicturesStep("late", 5, noise_seed=3)
    PolicyProcessorPipeline(steps=[step], name="policy_preprocessor").save_pretrained(tmp_path)
    loaded = PolicyProcessorPipeline.from_pretrained(tmp_path, config_filename="policy_preprocessor.json")
    batches = [observation() for _ in range(4)]
    for _ in range(2):
        shown = [loaded(batch)["observation.image"] for batch in batches]
        assert torch.equal(shown[0], batches[0]["observation.image"]), "reset() begins time anew"
        assert not torch.equal(shown[3], batches[3]["observation.image"])
        loaded.reset()


PLANTED = """
import os
from gym_pusht.envs.pusht import PushTEnv

reset, step, seen = PushTEnv.reset, PushTEnv.step, []

def seeded(self, seed=None, options=None):
    seen.extend([seed] * (seed is not None))
    return reset(self, seed, options)

def stepped(self, action):
    *given, info = step(self, action)
    return *given, info | {"is_success": os.environ["PLANTED"][len(seen) - 1] == "1"}

PushTEnv.reset, PushTEnv.step = seeded, stepped
"""
"""Gives the episodes of PushT, in which a policy of random weights never succeeds, the successes of a text."""


def test_lerobot_eval_runs_it_unchanged_and_the_record_has_its_successes(wrapped: Path, tmp_path: Path) -> None:
    pytest.importorskip("gym_pusht", reason="gym-pusht is not installed")
    known = tmp_path / "site" / "lerobot_policy_merton-0.1.0.dist-info"  # lerobot finds plug-ins by installed names
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: lerobot_policy_merton\nVersion: 0.1.0\n", "utf-8")
    (known.parent / "sitecustomize.py").write_text(PLANTED, "utf-8")
    found = os.pathsep.join([str(known.parent), *filter(None, sys.path)])

    def evaluated(name: str, planted: str, *options: str) -> dict[str, Any]:
        shape = [f"--env.observation_{side}={SIZE}" for side in ("height", "width")]
        done = subprocess.run(
            [sys.executable, "-m", "lerobot.scripts.lerobot_eval", *options, "--policy.device=cpu", "--env.type=pusht",
             *shape, "--env.episode_length=5", "--eval.n_episodes=3", "--eval.batch_size=1", "--seed=7",
             f"--output_dir={tmp_path / name}"],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": found, "HF_HUB_OFFLINE": "1", "PLANTED": planted},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        (task,) = json.loads((tmp_path / name / "eval_info.json").read_text("utf-8"))["per_task"]
        assert "".join("01"[won] for won in task["metrics"]["successes"]) == planted
        return task["metrics"]

    around = ["--policy.type=merton", f"--policy.wrapped={wrapped}", f"--policy.run={tmp_path / 'run'}"]
    plain = evaluated("plain", "000", f"--policy.path={wrapped}")
    said = {}
    for name, level, planted in (("reference", 0, "110"), ("max_darken", 5, "010"), ("late", 5, "001")):
        one = evaluated(
            name, planted, *around, f"--policy.results={tmp_path / name / 'eval_info.json'}",
            f"--policy.distortion={name}", f"--policy.level={level}",
        )  # fmt: skip
        said[name] = one["successes"]
        assert name != "reference" or one["sum_rewards"] == plain["sum_rewards"]
    folder = EpisodesFolder.read(tmp_path / "run")
    won = {(one.case.distortion, one.case.seed): one.outcome.success for one in folder.records()}
    assert won == {(name, scene): said[name][scene] for name in said for scene in range(3)}
    assert (len(folder.pairs.kept), folder.pairs.broken) == (6, ())
    assert all(one.decision is not None for one in folder.records() if one.case.level)
