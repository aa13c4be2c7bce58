"""VLMs in process, on tiny checkpoints of the classes the paper's models have: random weights, everything else real."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_checkpoints
from installed import skip_file_without

from merton.cognition.models.base import MODELS, ModelEntry, Question
from merton.cognition.models.transformers_vlm import TransformersVlm
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.world.observation import Image

for package in ("torch", "transformers"):
    skip_file_without(package, f"{package} is not installed (the extra models)")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny checkpoints are made, each once."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(params=tiny_checkpoints.CHECKPOINTS)
def model(request: pytest.FixtureRequest, folder: Path) -> TransformersVlm:
    """A model on each of the tiny checkpoints in turn."""
    return tiny(request.param, folder)


def tiny(name: str, folder: Path, **settings: object) -> TransformersVlm:
    place = folder / name
    if not place.exists():
        tiny_checkpoints.make(name, place)
    return TransformersVlm(name, str(place), device="cpu", **settings)  # type: ignore[arg-type]


def noise(height: int, width: int, seed: int) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


QUESTIONS = [
    Question((noise(48, 64, 0),), "how?", 8),
    Question((noise(60, 40, 1),), "In about ten words, say where the red cube is and how to pick up the red cube.", 8),
    Question((noise(32, 32, 2),), "where is the ball?", 8),
    Question((noise(48, 64, 0),), "push the blue cube", 8),
    Question((noise(48, 64, 3),), "how?", 5),
]
"""Of different lengths, sizes and limits, so that a batch has to pad."""


def test_a_batch_answers_as_one_by_one(model: TransformersVlm) -> None:
    alone = [model.answer(one.images, one.text, one.max_tokens).text for one in QUESTIONS]
    model.batch_size = 4
    assert [answer.text for answer in model.answer_batch(QUESTIONS)] == alone
    backwards = model.answer_batch(QUESTIONS[::-1])
    assert [answer.text for answer in backwards] == alone[::-1]


def test_answers_depend_on_image_and_question_and_on_nothing_else(model: TransformersVlm) -> None:
    import torch

    first = model.answer(QUESTIONS[0].images, "how?", 8).text
    torch.manual_seed(99)
    assert model.answer(QUESTIONS[0].images, "how?", 8).text == first
    others = [model.answer((noise(48, 64, seed),), "how?", 8).text for seed in range(4, 7)]
    others += [model.answer(QUESTIONS[0].images, text, 8).text for text in ("where is the ball?", "push the cube")]
    assert first
    assert len({first, *others}) >= 4


def test_an_answer_that_was_cut_off_is_marked(folder: Path) -> None:
    """The same model, with its second word piece as the end of an answer, ends there."""
    model = tiny("llava", folder)
    whole = model.answer(QUESTIONS[0].images, "how?", 8)
    assert whole.truncated
    assert whole.latency_s > 0
    inputs = model._inputs([Question(QUESTIONS[0].images, "how?")])
    second = int(model._model.generate(**inputs, max_new_tokens=2, do_sample=False)[0, -1])
    model._model.generation_config.eos_token_id = [2, second]
    ended = model.answer(QUESTIONS[0].images, "how?", 8)
    assert not ended.truncated
    assert len(ended.text) < len(whole.text)


def test_bfloat16_answers_too(model: TransformersVlm) -> None:
    """The type used on a GPU, here on the CPU, so that its conversions are tested."""
    import torch

    model.warm_up()
    model._model = model._model.to(torch.bfloat16)
    answers = model.answer_batch(QUESTIONS)
    assert [answer.text for answer in model.answer_batch(QUESTIONS)] == [answer.text for answer in answers]


def test_check_examines_every_part(model: TransformersVlm) -> None:
    findings = {finding.subject: finding for finding in model.check()}
    assert [*findings] == ["library", "checkpoint", "processor", "example"]
    assert all(finding.ok for finding in findings.values())
    assert "Pil" in findings["processor"].detail, "the Pillow version prepares the images"
    assert "bicubic" in findings["processor"].detail or "bilinear" in findings["processor"].detail


def test_the_classes_are_those_of_the_papers_models(folder: Path) -> None:
    classes = {
        "internvl": "InternVLForConditionalGeneration",
        "qwen2_vl": "Qwen2VLForConditionalGeneration",
        "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
        "ovis2": "Ovis2ForConditionalGeneration",
        "llava": "LlavaForConditionalGeneration",
    }
    assert set(classes) == set(tiny_checkpoints.CHECKPOINTS)
    for name, kind in classes.items():
        tiny(name, folder)
        assert json.loads((folder / name / "config.json").read_text(encoding="utf-8"))["architectures"] == [kind]


def test_more_than_one_image(folder: Path) -> None:
    two = (noise(48, 64, 0), noise(48, 64, 1))
    model = tiny("qwen2_vl", folder)
    assert model.answer(two, "how?", 8).text != model.answer(two[::-1], "how?", 8).text


def test_the_prompt_goes_around_the_question(folder: Path) -> None:
    plain, polite = tiny("llava", folder), tiny("llava", folder, prompt="{question} please")
    image = QUESTIONS[0].images
    assert plain.answer(image, "how? please", 8).text == polite.answer(image, "how?", 8).text


def test_too_slow_is_a_failure_of_the_machine(folder: Path) -> None:
    with pytest.raises(InfrastructureError, match="more than its 1e-06 s"):
        tiny("llava", folder, deadline_s=1e-6).answer(QUESTIONS[0].images, "how?", 8)


def test_invalid_requests_are_refused(folder: Path, tmp_path: Path) -> None:
    model = tiny("llava", folder)
    with pytest.raises(InputError, match="needs an image"):
        model.answer([], "how?")
    with pytest.raises(InputError, match="pinned revision"):
        TransformersVlm("m", "a/b", remote_code=True)
    with pytest.raises(InputError, match="batch_size"):
        TransformersVlm("m", "a/b", batch_size=0)
    with pytest.raises(MissingDependencyError, match="hf download nobody/nothing --revision abc"):
        TransformersVlm("m", "nobody/nothing", "abc").answer(QUESTIONS[0].images, "how?")
    with pytest.raises(MissingDependencyError, match="no checkpoint to load"):  # no failure of the model
        TransformersVlm("m", str(tmp_path)).answer(QUESTIONS[0].images, "how?")


def test_torn_weights_are_no_failure_of_the_model(folder: Path, tmp_path: Path) -> None:
    tiny("llava", folder)
    shutil.copytree(folder / "llava", tmp_path / "torn")
    (weights,) = (tmp_path / "torn").glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(MissingDependencyError, match=r"torn cannot be loaded from .*Safetensor"):
        TransformersVlm("torn", str(tmp_path / "torn")).answer(QUESTIONS[0].images, "how?")


def test_check_examines_a_checkpoint_without_weights(folder: Path, tmp_path: Path) -> None:
    tiny("internvl", folder)
    shutil.copytree(folder / "internvl", tmp_path / "half", ignore=shutil.ignore_patterns("*.safetensors"))
    model = TransformersVlm("half", str(tmp_path / "half"))
    findings = [*model.check()]
    assert [finding.subject for finding in findings] == ["library", "checkpoint", "processor", "example", "weights"]
    assert [finding.ok for finding in findings] == [True] * 4 + [False]
    with pytest.raises(MissingDependencyError, match="lacks the weights"):
        model.answer(QUESTIONS[0].images, "how?")


def test_phi_4_multimodal_needs_torchvision() -> None:
    """Its image processor has no version without it, as stated in the catalogue."""
    from importlib.util import find_spec

    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

    if find_spec("torchvision"):
        pytest.skip("torchvision is installed")
    assert "pil" not in IMAGE_PROCESSOR_MAPPING_NAMES["phi4_multimodal"]
    assert "torchvision" in MODELS["phi4-multimodal"].description


def test_an_entry_is_enough(folder: Path) -> None:
    tiny("llava", folder)
    entry = ModelEntry(
        name="mine", description="", adapter="transformers", checkpoint=str(folder / "llava"),
        settings={"device": "cpu", "batch_size": 2},
    )  # fmt: skip
    built = entry.build()
    assert isinstance(built, TransformersVlm)
    assert built.answer(QUESTIONS[0].images, "how?", 8).text == tiny("llava", folder).answer(*args()).text
    with pytest.raises(InputError, match="mine: transformers refuses its settings"):
        entry.model_copy(update={"settings": {"colour": "red"}}).build()


def args() -> tuple[tuple[Image, ...], str, int]:
    return QUESTIONS[0].images, "how?", 8


def test_smolvlm_needs_no_processor_of_videos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processor looks up `video_processor.num_frames` for a prompt about a still, and wants a package for words."""
    from transformers.models.smolvlm import processing_smolvlm

    folder = str(tiny_checkpoints.smolvlm(tmp_path))
    monkeypatch.setattr(processing_smolvlm, "num2words", None)
    with pytest.raises(MissingDependencyError, match="smol: Package `num2words` is required"):
        TransformersVlm("smol", folder).answer([noise(48, 64, 0)], "where?")
    monkeypatch.setattr(processing_smolvlm, "num2words", str)  # in its place: no number of a video is written
    smol = TransformersVlm("smol", folder)
    assert all(finding.ok for finding in smol.check())
    alone = [smol.answer([image], "where?", 8).text for image in (noise(48, 64, 0), noise(60, 40, 1))]
    questions = [Question((image,), "where?", 8) for image in (noise(48, 64, 0), noise(60, 40, 1))]
    assert [answer.text for answer in smol.answer_batch(questions)] == alone


PALIGEMMA = (
    "{% for message in messages %}{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% else %}answer en {{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
)


def test_a_checkpoint_without_a_chat_template_gets_its_form_of_prompt_from_the_catalogue(tmp_path: Path) -> None:
    folder = str(tiny_checkpoints.paligemma(tmp_path))
    with pytest.raises(InputError, match="has no chat template: write the form of its prompt as chat_template"):
        TransformersVlm("pali", folder).answer([noise(48, 64, 0)], "where?")
    entry = ModelEntry(
        name="pali", description="", adapter="transformers", checkpoint=folder, settings={"chat_template": PALIGEMMA}
    )
    pali = entry.build()
    assert isinstance(pali, TransformersVlm)
    assert all(finding.ok for finding in pali.check())
    shown = pali._words.decode(pali._inputs([Question((noise(48, 64, 0),), "where?")])["input_ids"][0])
    assert shown.count("<image>") == 16
    assert "answer en where?" in shown
    assert pali.answer([noise(48, 64, 0)], "where?", 8).text != pali.answer([noise(48, 64, 3)], "where?", 8).text
