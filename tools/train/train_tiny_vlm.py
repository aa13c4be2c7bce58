"""Train merton-tiny-vlm: python tools/train/train_tiny_vlm.py [FOLDER] [--scenes N] [--steps N].

Needs torch and transformers (requirements/models.txt); a GPU is used if there is one. The scenes are those of
`tools/train/scene_samples.py`, the question is that for every VLM, and the taught answer is the object of the task, its
place and a plan in about ten words. Besides the next word, the encoder learns the colour and the place under each of
its patches, and one head of the decoder learns to attend to the object whose place comes next: without this, places
stay at chance for a very long time. The state of the training is saved every few hundred steps, so that it continues
after an interruption. At the end the answers to held-out scenes are counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scene_samples import FOLDER, HELD_OUT_SEEDS, TRAINING_SEEDS, Samples, load
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from training_loop import Loss, train
from transformers import (
    CLIPImageProcessorPil,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    VisionEncoderDecoderModel,
    ViTConfig,
    ViTModel,
)

from merton.cognition.models.base import Question, question_for
from merton.cognition.models.tiny_vlm import TRAINED_PROMPT
from merton.cognition.models.transformers_vlm import TransformersVlm
from merton.decision.models.tiny_vla import CROP, VIEW_HEIGHT, VIEW_WIDTH, view_points
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.tasks import COLORS, TASKS, parse

CHECKPOINT = Path("src/merton/merton/cognition/models/tiny_vlm")
CROP_HEIGHT, CROP_WIDTH = 96, 128
"""The middle of a view, which contains the objects of a task."""
TOP, LEFT = (VIEW_HEIGHT - CROP_HEIGHT) // 2, (VIEW_WIDTH - CROP_WIDTH) // 2
PATCH = 8
WIDTH, ENCODER_LAYERS, DECODER_LAYERS, HEADS = 96, 2, 3, 4
BATCH = 32
LOOKING_LAYER = 1
"""Layer of the decoder whose first head's attention is supervised."""
ROWS = ((0.45, "near"), (0.55, "middle"), (9.0, "far"))
COLUMNS = ((-0.083, "right"), (0.083, "center"), (9.0, "left"))
PLACES = tuple(f"{row} {column}" for _, row in ROWS for _, column in COLUMNS)
PLANS = {
    "reach": "move the hand above it",
    "push": "close gripper and push {direction}",
    "pick": "lower gripper close and lift",
    "place": "grasp it and set on {target}",
    "press": "close gripper and press it down",
    "pull": "grip the handle and pull back",
    "twist": "grasp it and turn {direction}",
    "move": "grasp it and set {direction} of {target}",
    "cover": "grasp {target} and set it over",
    "insert": "grasp it and lower into {target}",
    "pour": "grasp it and tilt over {target}",
}


def place(point: tuple[float, float]) -> str:
    """The ninth of the table around a point (x, y) [m], in words."""
    row = next(word for end, word in ROWS if point[0] <= end)
    column = next(word for end, word in COLUMNS if point[1] <= end)
    return f"{row} {column}"


def answer(instruction: str, things: dict[str, tuple[float, float]]) -> str:
    """The taught answer, such as "red cube far left grasp it and set on blue mat near right"."""
    command = parse(instruction)
    target = f"{command.target} {place(things[command.target])}" if command.target else ""
    plan = PLANS[command.verb].format(direction=command.direction, target=target)
    return f"{command.object} {place(things[command.object])} {plan}"


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words in lower case, without punctuation."""
    words = sorted({word for text in texts for word in text.lower().replace(",", " ").replace(".", " ").split()})
    special = ["<pad>", "<end>", "<unknown>"]
    core = Tokenizer(models.WordLevel({word: i for i, word in enumerate(special + words)}, unk_token="<unknown>"))
    core.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(",", " "), normalizers.Replace(".", " ")]
    )
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<end>", bos_token="<end>", unk_token="<unknown>"
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> VisionEncoderDecoderModel:
    """Tiny ViT and GPT-2; the encoder's positions begin as waves, so that places are easy to learn."""
    encoder = ViTModel(  # its pooler is unused, but transformers warns about a checkpoint without one
        ViTConfig(
            hidden_size=WIDTH, num_hidden_layers=ENCODER_LAYERS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
            image_size=(CROP_HEIGHT, CROP_WIDTH), patch_size=PATCH, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )  # fmt: skip
    rows, columns = CROP_HEIGHT // PATCH, CROP_WIDTH // PATCH
    v, u = np.divmod(np.arange(rows * columns), columns)
    frequencies = np.pi / 2 ** np.arange(WIDTH // 4 - 1, -1, -1).clip(max=4)
    waves = np.concatenate([wave(np.outer(axis, frequencies)) for axis in (u, v) for wave in (np.sin, np.cos)], axis=1)
    with torch.no_grad():
        encoder.embeddings.position_embeddings[0, 1:] = torch.from_numpy(waves).float() * 0.5
    decoder = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer), n_positions=64, n_embd=WIDTH, n_layer=DECODER_LAYERS, n_head=HEADS,
            add_cross_attention=True, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            attn_implementation="eager", bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    model = VisionEncoderDecoderModel(encoder=encoder, decoder=decoder)
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id = tokenizer.bos_token_id
        config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    return model


def cropped(images: NDArray[np.uint8]) -> Tensor:
    """(n, 3, CROP_HEIGHT, CROP_WIDTH) uint8: the crop of the image processor, out of the policy's crop."""
    top, left = TOP - CROP[0].start, LEFT - CROP[1].start
    part = images[:, top : top + CROP_HEIGHT, left : left + CROP_WIDTH]
    return torch.from_numpy(np.ascontiguousarray(part)).permute(0, 3, 1, 2)


def patch_labels(samples: Samples) -> tuple[Tensor, Tensor]:
    """The encoder's labels of each patch.

    Returns:
        (n, patches) the colour of the object whose centre is within 3 cm of the patch on the table, 0 for none; and
        (patches,) the index of the patch's place in `PLACES`.
    """
    cameras, cell = SceneCameras(VIEW_WIDTH, VIEW_HEIGHT), SimulatedCell()
    cell.reset("reach", 0)
    view = cameras.render("reach", 0, cell.qpos, "top")
    cameras.close()
    rows, columns = CROP_HEIGHT // PATCH, CROP_WIDTH // PATCH
    v, u = np.divmod(np.arange(rows * columns), columns)
    spots = view_points(view, np.column_stack([u * PATCH + LEFT, v * PATCH + TOP]) + PATCH / 2 - 0.5)
    colors = list(COLORS)
    labels = np.zeros((len(samples), len(spots)), np.int64)
    for index, things in enumerate(samples.things):
        known = [(colors.index(name.split()[0]) + 1, xy) for name, xy in things.items() if name.split()[0] in colors]
        distances = np.linalg.norm(spots[:, None] - np.array([xy for _, xy in known]), axis=2)
        nearest = distances.argmin(axis=1)
        labels[index] = np.where(distances.min(axis=1) < 0.03, np.array([label for label, _ in known])[nearest], 0)
    places = [PLACES.index(place((float(x), float(y)))) for x, y in spots]
    return torch.from_numpy(labels), torch.tensor(places)


def augmented(images: Tensor, rng: torch.Generator) -> Tensor:
    """Random strength and colour of light; (batch, 3, h, w) uint8 to -1..1."""
    count = len(images)
    gain = 0.85 + 0.3 * torch.rand(count, 1, 1, 1, generator=rng)
    tint = 0.94 + 0.12 * torch.rand(count, 3, 1, 1, generator=rng)
    return 2 * (images.float() / 255 * gain * tint).clamp(0, 1) - 1


def loss_of_steps(
    model: VisionEncoderDecoderModel, names: nn.Linear, places: Tensor, data: dict[str, Tensor], device: str
) -> Callable[[int], Loss]:
    """The loss of a step: of the next words, of the patches' colours and places, and of where the decoder looks."""

    def loss_of(step: int) -> Loss:
        rng = torch.Generator().manual_seed(step)
        rows = torch.randint(len(data["images"]), (BATCH,), generator=rng)
        batch = {name: values[rows].to(device) for name, values in data.items()}
        seen = model.encoder(augmented(batch["images"], rng)).last_hidden_state
        said = model.decoder(
            input_ids=batch["texts"][:, :-1],
            attention_mask=batch["mask"][:, :-1],
            encoder_hidden_states=seen,
            output_attentions=True,
        )
        words = nn.functional.cross_entropy(
            said.logits.flatten(0, 1), batch["wanted"][:, 1:].flatten(), ignore_index=-100
        )
        color, where = names(seen[:, 1:]).split([len(COLORS) + 1, len(PLACES)], -1)
        patches = nn.functional.cross_entropy(color.flatten(0, 1), batch["patches"].flatten())
        occupied = batch["patches"] > 0
        patches = patches + nn.functional.cross_entropy(where[occupied], places.expand(len(where), -1)[occupied])
        eye = said.cross_attentions[LOOKING_LAYER][:, 0, :, 1:]
        due = batch["looks"][:, 1:]
        there = (batch["patches"][:, None] == due[..., None]) & (due > 0)[..., None]
        counted = there.any(-1)
        look = -((eye * there).sum(-1)[counted] + 1e-6).log().mean()
        return words + 0.3 * patches + 0.1 * look, (words, patches, look)

    return loss_of


def encoded(tokenizer: PreTrainedTokenizerFast, samples: Samples) -> dict[str, Tensor]:
    """Questions followed by answers, padded on the right; only the answers are learned."""
    questions = [tokenizer(question_for(text, TRAINED_PROMPT))["input_ids"] for text in samples.instructions]
    answers = [
        tokenizer(answer(text, things))["input_ids"]
        for text, things in zip(samples.instructions, samples.things, strict=True)
    ]
    start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    texts = [[start, *question, *reply, end] for question, reply in zip(questions, answers, strict=True)]
    longest = max(map(len, texts))
    padded = np.full((len(texts), longest), tokenizer.pad_token_id, np.int64)
    wanted = np.full((len(texts), longest), -100, np.int64)
    looks = np.zeros((len(texts), longest), np.int64)
    rows_said = {tokenizer.convert_tokens_to_ids(word) for _, word in ROWS}
    colors = {tokenizer.convert_tokens_to_ids(color): number for number, color in enumerate(COLORS, 1)}
    for row, (text, question) in enumerate(zip(texts, questions, strict=True)):
        padded[row, : len(text)] = text
        wanted[row, len(question) + 1 : len(text)] = text[len(question) + 1 :]
        for position in range(len(question) + 3, len(text)):
            if text[position] in rows_said and text[position - 2] in colors:  # "red cube far left"
                looks[row, position : position + 2] = colors[text[position - 2]]
    return {
        "images": cropped(samples.images),
        "texts": torch.from_numpy(padded),
        "mask": torch.from_numpy((padded != tokenizer.pad_token_id).astype(np.int64)),
        "wanted": torch.from_numpy(wanted),
        "looks": torch.from_numpy(looks),
    }


def accuracy(folder: Path, tasks: list[str], scenes: int) -> dict[str, float]:
    """Share of correct words and of correct answers on held-out scenes, by the adapter of the package."""
    samples = load(tasks, range(HELD_OUT_SEEDS, HELD_OUT_SEEDS + scenes))
    model = TransformersVlm("tiny-vlm", str(folder))
    views = np.zeros((len(samples), VIEW_HEIGHT, VIEW_WIDTH, 3), np.uint8)
    views[:, CROP[0], CROP[1]] = samples.images  # the image processor crops more
    questions = [
        Question((view,), question_for(text, TRAINED_PROMPT), 40)
        for view, text in zip(views, samples.instructions, strict=True)
    ]
    right = words = whole = 0
    for said, text, things in zip(model.answer_batch(questions), samples.instructions, samples.things, strict=True):
        taught, given = answer(text, things).split(), said.text.split()
        right += sum(one == other for one, other in zip(taught, given, strict=False))
        words += len(taught)
        whole += taught == given
    return {"words": right / words, "answers": whole / len(samples)}


def main() -> None:
    """Draw scenes, train, save, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", nargs="?", type=Path, default=CHECKPOINT)
    parser.add_argument("--scenes", type=int, default=1000, help="scenes of every task")
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    samples = load(arguments.tasks, range(TRAINING_SEEDS, TRAINING_SEEDS + arguments.scenes))
    answers = [answer(text, things) for text, things in zip(samples.instructions, samples.things, strict=True)]
    tokenizer = make_tokenizer([*answers, *(question_for(text, TRAINED_PROMPT) for text in samples.instructions)])
    model, names = make_model(tokenizer), nn.Linear(WIDTH, len(COLORS) + 1 + len(PLACES))
    patches, places = patch_labels(samples)
    data = {**encoded(tokenizer, samples), "patches": patches}
    state_file = FOLDER / "tiny_vlm_training.pt"
    whole = nn.ModuleDict({"model": model, "names": names}).to(device).train()
    loss_of = loss_of_steps(model, names, places.to(device), data, device)
    started = time.process_time()
    for step, parts in train(whole, arguments.steps, state_file, loss_of, rate=1.5e-3, weight_decay=0.01, clip=1.0):
        if step % 100 == 0:
            words, patch, look = parts
            spent_s = time.process_time() - started
            print(f"step {step}: words {words:.3f}, patches {patch:.3f}, look {look:.2f}; {spent_s:.0f} s", flush=True)
    model.half().save_pretrained(arguments.output)
    tokenizer.save_pretrained(arguments.output)
    CLIPImageProcessorPil(
        do_resize=True, size={"shortest_edge": VIEW_HEIGHT}, do_center_crop=True,
        crop_size={"height": CROP_HEIGHT, "width": CROP_WIDTH}, image_mean=[0.5] * 3, image_std=[0.5] * 3,
    ).save_pretrained(arguments.output)  # fmt: skip
    state_file.unlink()
    size = sum(file.stat().st_size for file in arguments.output.iterdir())
    print(f"{arguments.output}: {size / 1e6:.2f} MB")
    print(accuracy(arguments.output, arguments.tasks, 50))


if __name__ == "__main__":
    main()
