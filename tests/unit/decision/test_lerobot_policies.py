"""The adapter against LeRobot's own classes, with few and random weights: the actions of its `select_action`.

Skipped where LeRobot is not installed; `make lerobot` and CI make an environment for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tiny_checkpoints
from tiny_checkpoints import IMAGE_PX

from merton.decision.models.base import example_observation
from merton.decision.models.convention_entry import ConventionEntry, Gripper, Joints
from merton.decision.models.conventions import convention_of
from merton.decision.models.images import shrunk
from merton.decision.models.lerobot import LeRobot
from merton.errors import InputError
from merton.world.observation import Observation

lerobot = pytest.importorskip("lerobot", reason="LeRobot is not installed (the extra lerobot)")
torch = pytest.importorskip("torch")

CAMERA, IMAGE, STATE = "top", "observation.images.top", "observation.state"
SIZE_PX = (120, 212)
"""Half the size of the cell's pictures."""
EXPORT = convention_of(
    ConventionEntry(
        name="export",
        rate_hz=10.0,
        joints=Joints(arm="UR5", are="absolute", tool_m=0.235),
        gripper=Gripper(closed=0.0, open=0.14),
    )
)
TINY: dict[str, dict[str, Any]] = {
    "act": {
        "chunk_size": 6, "n_action_steps": 4, "dim_model": 32, "n_heads": 2, "dim_feedforward": 32,
        "n_encoder_layers": 1, "n_vae_encoder_layers": 1, "latent_dim": 4, "pretrained_backbone_weights": None,
    },
    "diffusion": {
        "n_obs_steps": 2, "horizon": 8, "n_action_steps": 4, "down_dims": (16, 32), "n_groups": 4,
        "num_train_timesteps": 5, "crop_shape": None, "spatial_softmax_num_keypoints": 4,
        "diffusion_step_embed_dim": 8, "pretrained_backbone_weights": None, "use_group_norm": True,
    },
    "vqbet": {
        "n_obs_steps": 3, "n_action_pred_token": 2, "action_chunk_size": 4, "crop_shape": (84, 84), "gpt_n_layer": 1,
        "gpt_n_head": 2, "gpt_hidden_dim": 16, "gpt_input_dim": 16, "gpt_output_dim": 16, "vqvae_n_embed": 4,
        "vqvae_embedding_dim": 8, "vqvae_enc_hidden_dim": 8, "spatial_softmax_num_keypoints": 4,
        "pretrained_backbone_weights": None,
    },
}  # fmt: skip
TINY_LANGUAGE: dict[str, dict[str, Any]] = {
    "smolvla": {
        "chunk_size": 6, "n_action_steps": 4, "num_vlm_layers": 2, "tokenizer_max_length": 12, "num_steps": 2,
        "resize_imgs_with_padding": (IMAGE_PX, IMAGE_PX),
    },
    "pi0": {"chunk_size": 6, "n_action_steps": 4, "num_inference_steps": 2, "tokenizer_max_length": 12},
    "pi05": {"chunk_size": 6, "n_action_steps": 4, "num_inference_steps": 2, "tokenizer_max_length": 64},
}  # fmt: skip
"""Policies with a language model, whose classes give no small form by themselves: see `small_language`."""


@pytest.fixture
def small_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """A function that makes the language model of a class small, and gives the settings that it needs.

    SmolVLA reads its sizes from a folder. Pi0 and Pi0.5 have theirs in their source, and their tokenizer on a hub:
    only these numbers and the tokenizer are replaced, by ones that are made here.
    """
    transformers = pytest.importorskip("transformers", reason="LeRobot's parts for language are not installed")
    from transformers import CONFIG_MAPPING

    def sizes(variant: str) -> Any:
        return SimpleNamespace(width=16, depth=2, mlp_dim=32, num_heads=2, num_kv_heads=1, head_dim=8)

    def paligemma() -> Any:
        config = CONFIG_MAPPING["paligemma"]()
        config.vision_config.hidden_size, config.vision_config.num_hidden_layers = 16, 1
        config.vision_config.num_attention_heads = 2
        return config

    def make(kind: str) -> dict[str, Any]:
        if kind == "smolvla":
            pytest.importorskip("num2words", reason="LeRobot's part for SmolVLA is not installed")
            return {"vlm_model_name": str(tiny_checkpoints.smolvlm(tmp_path))}
        kept, vision = {"projection_dim": 16, "intermediate_size": 32}, type(paligemma().vision_config)
        assign = vision.__setattr__
        monkeypatch.setattr(vision, "__setattr__", lambda one, name, value: assign(one, name, kept.get(name, value)))
        module = importlib.import_module(f"lerobot.policies.{kind}.modeling_{kind}")
        monkeypatch.setattr(module, "get_gemma_config", sizes)
        monkeypatch.setattr(module, "CONFIG_MAPPING", {"paligemma": paligemma, "gemma": CONFIG_MAPPING["gemma"]})
        words = tiny_checkpoints.tokenizer({}, "")
        monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: words)
        return {}

    return make


@pytest.fixture(scope="module")
def checkpoint_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that writes a checkpoint as `lerobot-train` does, with random weights, and gives its folder."""
    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.factory import get_policy_class, make_policy_config, make_pre_post_processors

    def make(kind: str, **further: Any) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        inputs = {
            STATE: PolicyFeature(FeatureType.STATE, (7,)),
            IMAGE: PolicyFeature(FeatureType.VISUAL, (3, *SIZE_PX)),
        }
        outputs = {"action": PolicyFeature(FeatureType.ACTION, (7,))}
        settings = {**TINY, **TINY_LANGUAGE}[kind] | further
        config = make_policy_config(
            kind, input_features=inputs, output_features=outputs, device="cpu", push_to_hub=False, **settings
        )
        torch.manual_seed(0)
        policy = get_policy_class(kind)(config)
        policy.save_pretrained(folder)
        rng = np.random.default_rng(0)
        numbers = {name: torch.tensor(rng.uniform(0.5, 1.0, 7), dtype=torch.float32) for name in ("mean", "std")}
        for name, sign in (("min", -1), ("max", 1), ("q01", -1), ("q99", 1)):
            numbers[name] = numbers["mean"] + sign
        picture = {name: torch.full((3, 1, 1), value) for name, value in
                   {"mean": 0.4, "std": 0.3, "min": 0.0, "max": 1.0}.items()}  # fmt: skip
        stats = {STATE: numbers, "action": numbers, IMAGE: picture}
        for processor in make_pre_post_processors(config, dataset_stats=stats):
            processor.save_pretrained(folder)
        return folder

    return make


def seen_in_turn(count: int) -> list[Observation]:
    """Observations of an arm and a picture that change from one control step to the next."""
    example, rng = example_observation("pick up the red cube", (CAMERA,)), np.random.default_rng(1)
    found = []
    for number in range(count):
        view = replace(example.views[CAMERA], color=rng.integers(0, 256, (240, 424, 3), dtype=np.uint8))
        joints = example.joints_rad + 0.05 * number
        found.append(replace(example, views={CAMERA: view}, joints_rad=joints, noise_seed=3))
    return found


def by_lerobot(folder: Path, observations: list[Observation]) -> np.ndarray:
    """The actions (n, 7) of LeRobot's own loop: `select_action` at every control step, as lerobot-eval calls it."""
    from lerobot.configs.policies import PreTrainedConfig
    from lerobot.policies.factory import get_policy_class, make_pre_post_processors

    config = PreTrainedConfig.from_pretrained(folder)
    config.device = "cpu"
    policy = get_policy_class(config.type).from_pretrained(folder, config=config).eval()
    before, after = make_pre_post_processors(policy.config, pretrained_path=str(folder))
    policy.reset()
    torch.manual_seed(3)
    found = []
    with torch.inference_mode():
        for observation in observations:
            color = shrunk(observation.views[CAMERA].color, SIZE_PX)
            batch = {
                STATE: torch.tensor(EXPORT.joints_of(observation), dtype=torch.float32)[None],
                IMAGE: torch.from_numpy(color.transpose(2, 0, 1).copy())[None].float() / 255,
                "task": [observation.instruction],
            }
            found.append(after(policy.select_action(before(batch)))[0].numpy())
    return np.array(found)


@pytest.mark.parametrize("kind", TINY)
def test_a_chunk_is_what_select_action_gives_from_a_reset(checkpoint_of: Callable[..., Path], kind: str) -> None:
    """LeRobot is shown a frame at each control step, Merton the first alone: the others are not looked at."""
    folder, rows = checkpoint_of(kind), 4
    observations = seen_in_turn(rows)
    raw = by_lerobot(folder, observations)
    model = LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu")
    chunk = model.act(observations[0])
    expected = EXPORT.chunk(raw, state=EXPORT.joints_of(observations[0]))
    assert chunk.deltas.shape == (rows, 7)
    np.testing.assert_allclose(chunk.deltas, expected.deltas, atol=1e-6)
    assert np.abs(np.diff(chunk.deltas[:, :6], axis=0)).max() > 1e-3, "a chunk whose actions are one and the same"
    assert (model.act(observations[0]).deltas == chunk.deltas).all(), "nothing is kept between two calls"


@pytest.mark.parametrize("kind", TINY_LANGUAGE)
def test_a_policy_with_a_language_model_gives_what_select_action_does(
    checkpoint_of: Callable[..., Path], small_language: Callable[[str], dict[str, Any]], kind: str
) -> None:
    folder = checkpoint_of(kind, **small_language(kind))
    observations = seen_in_turn(4)
    raw = by_lerobot(folder, observations)
    model = LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu")
    expected = EXPORT.chunk(raw, state=EXPORT.joints_of(observations[0]))
    chunk = model.act(observations[0])
    np.testing.assert_allclose(chunk.deltas, expected.deltas, atol=1e-5)
    assert np.abs(np.diff(chunk.deltas[:, :6], axis=0)).max() > 1e-3, "a chunk whose actions are one and the same"


def test_act_in_merton_is_act_in_lerobot_over_a_whole_episode(checkpoint_of: Callable[..., Path]) -> None:
    """Three chunks, asked at the control steps 0, 4 and 8, are the twelve actions of LeRobot's loop."""
    folder, observations = checkpoint_of("act"), seen_in_turn(12)
    raw = by_lerobot(folder, observations)
    model = LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu")
    for start in (0, 4, 8):
        sent = EXPORT.joints_of(observations[start])
        expected = EXPORT.chunk(raw[start : start + 4], state=sent)
        np.testing.assert_allclose(model.act(observations[start]).deltas, expected.deltas, atol=1e-6)


def test_temporal_ensembling_is_refused(checkpoint_of: Callable[..., Path]) -> None:
    folder = checkpoint_of("act", temporal_ensemble_coeff=0.01, n_action_steps=1)
    model = LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu")
    with pytest.raises(InputError, match="temporal_ensemble_coeff"):
        model.act(seen_in_turn(1)[0])


def test_a_stateful_one_averages_over_chunks_as_lerobot_does(checkpoint_of: Callable[..., Path]) -> None:
    """Asked at every row, in two trials one after the other."""
    folder, observations = checkpoint_of("act", temporal_ensemble_coeff=0.01, n_action_steps=1), seen_in_turn(6)
    raw = by_lerobot(folder, observations)
    model = LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu", stateful=True)
    for _ in range(2):
        model.begin_trial()
        for row, seen in zip(raw, observations, strict=True):
            expected = EXPORT.chunk(row, state=EXPORT.joints_of(seen))
            np.testing.assert_allclose(model.act(seen).deltas, expected.deltas, atol=1e-6)


def test_the_weights_of_a_backbone_are_not_downloaded(checkpoint_of: Callable[..., Path]) -> None:
    """A checkpoint names the weights that its backbone began with; its own replace them."""
    folder = checkpoint_of("act")
    config = folder / "config.json"
    named = config.read_text().replace(
        '"pretrained_backbone_weights": null', '"pretrained_backbone_weights": "ResNet18_Weights.IMAGENET1K_V1"'
    )
    assert named != config.read_text()
    config.write_text(named)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("torch.hub.load_state_dict_from_url", lambda *_, **__: pytest.fail("a download"))
        monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", lambda *_, **__: pytest.fail("so"))
        LeRobot("tiny", str(folder), "", EXPORT, {IMAGE: CAMERA}, device="cpu").act(seen_in_turn(1)[0])


def test_check_names_the_history_and_the_arm(checkpoint_of: Callable[..., Path]) -> None:
    model = LeRobot("tiny", str(checkpoint_of("diffusion")), "", EXPORT, {IMAGE: CAMERA}, device="cpu")
    findings = {finding.subject: finding.detail for finding in model.check()}
    assert "2 instants" in findings["history"]
    assert "arm" not in findings, "the cell has a UR5, too"
