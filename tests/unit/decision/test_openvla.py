"""Actions as tokens by hand-computed values, and OpenVLA's adapter on a stand-in with the same call surface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from merton.decision.models.action_tokens import END, ActionTokens
from merton.decision.models.base import ADAPTERS, POLICIES, PolicyEntry, example_observation
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.images import prepared
from merton.decision.models.openvla import OpenVla
from merton.errors import InputError, InvalidActionError, MissingDependencyError
from merton.models.catalogue import ImagePreparation

PIN = "0" * 40
LOW, HIGH = -0.05, 0.05
MASK = [True] * 6 + [False]
ZERO = 31872
"""The word whose bin is centred at 0: 32000 - 31872 = 128, and centre 127 of 255 is the middle one."""


# Tokens ---------------------------------------------------------------------------------------------------------------


def test_tokens_name_the_centres_of_bins() -> None:
    """256 edges over -1 .. 1 are 2/255 apart; the last word is the lowest bin, whose centre is 1/255 above -1."""
    tokens = ActionTokens()
    assert tokens.normalised([31999])[0] == pytest.approx(-1 + 1 / 255)
    assert tokens.normalised([31998])[0] == pytest.approx(-1 + 3 / 255)
    assert tokens.normalised([ZERO])[0] == pytest.approx(0.0, abs=1e-12)
    assert tokens.normalised([31745])[0] == pytest.approx(1 - 1 / 255)
    assert tokens.normalised([31744])[0] == pytest.approx(1 - 1 / 255), "the 256th word shares the last centre"


def test_tokens_of_words_are_an_invalid_action() -> None:
    assert ActionTokens().are_actions([31743, 31744, 31999, 32000, 2]).tolist() == [False, True, True, False, False]
    with pytest.raises(InvalidActionError, match="31743"):
        ActionTokens().normalised([31743])


def test_an_action_stands_at_the_end_of_a_chain() -> None:
    words = [1, 450, 7093, 338]
    action = [ZERO, 31999, ZERO, ZERO, ZERO, ZERO, 31744]
    expected = [0, -1 + 1 / 255, 0, 0, 0, 0, 1 - 1 / 255]
    assert ActionTokens().at_the_end([*words, *action, END]) == pytest.approx(expected, abs=1e-12)
    assert ActionTokens().at_the_end([*words, *action]) == pytest.approx(expected, abs=1e-12)
    for cut in ([*words, *action[:6]], words, [*words, *action[:3], END], []):
        with pytest.raises(InvalidActionError, match="cut off"):
            ActionTokens().at_the_end(cut)


# The adapter ----------------------------------------------------------------------------------------------------------


class OpenVlaStandIn:
    """Not OpenVLA: answers `predict_action` with fixed tokens, as OpenVLA's class would with those it writes.

    Args:
        tokens: what it "writes".
        thinks: also gives the tokens, as Embodied-CoT's class does.
    """

    vocab_size = 32000

    def __init__(self, tokens: list[int], thinks: bool = False) -> None:
        self.tokens, self.thinks = tokens, thinks
        action = {"q01": [LOW] * 7, "q99": [HIGH] * 7, "mask": MASK}
        self.norm_stats = {"bridge_orig": {"action": action}}
        self.asked: list[dict[str, Any]] = []

    def predict_action(self, unnorm_key: str, do_sample: bool, **inputs: Any) -> Any:
        """One action, un-normalised by the arithmetic of the paper written out."""
        self.asked.append({"unnorm_key": unnorm_key, "do_sample": do_sample, **inputs})
        words = np.array(self.tokens)
        bins = np.clip(32000 - words[-8:-1] - 1, 0, 254) if self.thinks else np.clip(32000 - words - 1, 0, 254)
        normalised = -1 + (2 * bins + 1) / 255
        action = np.where(MASK, LOW + (normalised + 1) / 2 * (HIGH - LOW), normalised)
        return (action, np.array([self.tokens])) if self.thinks else action


def policy(tmp_path: Path, model: OpenVlaStandIn, **more: Any) -> OpenVla:
    """The adapter around a stand-in; the processor returns its arguments."""
    return OpenVla(
        "stand-in", str(tmp_path), PIN, CONVENTIONS["bridge"], "bridge_orig",
        load=lambda folder: (lambda text, image: {"text": text, "image": image}, model), **more,
    )  # fmt: skip


def test_the_request_has_openvlas_form(tmp_path: Path) -> None:
    model = OpenVlaStandIn([31999, ZERO, ZERO, ZERO, ZERO, ZERO, 31744])
    chunk = policy(tmp_path, model).act(example_observation("Pick up the red cube", ("top",)))
    asked = model.asked[0]
    assert asked["text"] == "In: What action should the robot take to pick up the red cube?\nOut:"
    assert (asked["unnorm_key"], asked["do_sample"]) == ("bridge_orig", False)
    assert asked["image"].size == (424, 240)
    assert "max_new_tokens" not in asked
    assert chunk.deltas[0] == pytest.approx([LOW + (HIGH - LOW) / 510, 0, 0, 0, 0, 0, 1 - 1 / 255], abs=1e-12)
    assert (chunk.step_s, chunk.model, chunk.done) == (0.2, "stand-in", False)


def test_a_chain_of_thought_ends_with_the_same_action(tmp_path: Path) -> None:
    action = [31999, ZERO, 31900, ZERO, ZERO, ZERO, 31744]
    plain = policy(tmp_path, OpenVlaStandIn(action)).act(example_observation("reach", ("top",)))
    model = OpenVlaStandIn([319, 13563, *action, END], thinks=True)
    thinking = policy(tmp_path, model, chain_tokens=1024)
    assert thinking.act(example_observation("reach", ("top",))).deltas == pytest.approx(plain.deltas)
    assert model.asked[0]["max_new_tokens"] == 1024


def test_a_chain_that_was_cut_off_is_an_invalid_action(tmp_path: Path) -> None:
    thinking = policy(tmp_path, OpenVlaStandIn([319] * 1024, thinks=True), chain_tokens=1024)
    results = thinking.act_batch([thinking.make_example()] * 2)
    assert [type(result) for result in results] == [InvalidActionError] * 2
    assert "1024 tokens does not end with an action" in str(results[0])


def test_missing_parts_are_named(tmp_path: Path) -> None:
    model = policy(tmp_path, OpenVlaStandIn([ZERO] * 7))
    with pytest.raises(InputError, match="camera 'top'"):
        model.act(example_observation("reach"))
    with pytest.raises(InvalidActionError, match="no tokens"):
        policy(tmp_path, OpenVlaStandIn([ZERO] * 7), chain_tokens=9).act(model.make_example())
    here = [*model.check()]
    assert [finding.ok for finding in here] == [True, False]
    assert here[1].subject == "weights"

    def full(_: Path) -> Any:
        raise RuntimeError("CUDA out of memory")

    large = OpenVla("large", str(tmp_path), PIN, CONVENTIONS["bridge"], "bridge_orig", load=full)
    with pytest.raises(
        MissingDependencyError, match=r"large cannot be loaded from .*: RuntimeError: CUDA out of memory"
    ):
        large.act(large.make_example())
    away = OpenVla("away", "nobody/nothing", PIN, CONVENTIONS["bridge"], "bridge_orig")
    with pytest.raises(MissingDependencyError, match=f"hf download nobody/nothing --revision {PIN}|OpenVLA needs"):
        away.act(away.make_example())


def test_its_own_code_needs_an_older_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    if hasattr(transformers, "AutoModelForVision2Seq"):
        pytest.skip("this transformers is old enough for OpenVLA's own code")
    real = OpenVla("real", str(tmp_path), PIN, CONVENTIONS["bridge"], "bridge_orig")
    with pytest.raises(MissingDependencyError, match=r"transformers 4\.40\.1"):
        real.act(real.make_example())


def test_code_of_a_checkpoint_runs_only_with_remote_code() -> None:
    assert POLICIES["embodied-cot"].remote_code
    assert "openvla" in ADAPTERS
    entry = PolicyEntry(
        name="mine", description="", adapter="openvla", checkpoint="a/b", revision=PIN, cameras=("top",),
        convention="bridge", unnorm_key="bridge_orig",
    )  # fmt: skip
    with pytest.raises(InputError, match="remote_code: true"):
        entry.build()


# Images ---------------------------------------------------------------------------------------------------------------


def test_the_crop_keeps_nine_tenths_of_the_area() -> None:
    """Of a ramp of 200 columns, the middle sqrt(0.9) is left, stretched to the whole width again."""
    pytest.importorskip("PIL")
    ramp = np.tile(np.arange(200, dtype=np.uint8)[None, :, None], (200, 1, 3))
    whole = ImagePreparation(size_px=(200, 200), resize="lanczos", by="adapter")
    assert (np.asarray(prepared(ramp, whole)) == ramp).all()
    cropped = np.asarray(prepared(ramp, whole.model_copy(update={"crop": 0.9})))
    kept = np.sqrt(0.9)
    assert cropped[100, 0, 0] == pytest.approx(200 * (1 - kept) / 2, abs=1.0)
    assert cropped[100, -1, 0] == pytest.approx(200 - 200 * (1 - kept) / 2 - 1, abs=1.0)
    assert np.asarray(prepared(ramp, ImagePreparation())).shape == ramp.shape
