"""Truth of a scene for the networks of the learned VLMs, and their losses."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from split_samples import TASKS_PER_SCENE, SplitSamples
from torch import Tensor, nn
from vlm_networks import GazeNetwork, ScribeNetwork
from vlm_samples import PictureThings, tasks_of

from merton.cognition.models.gaze import FOVEA, PITCH, corner, places_px
from merton.cognition.models.scribe import END, SHRINK, numbers
from merton.world.nouns import COLORS, PLACES, SIZES, noun
from merton.world.tasks import parse

MOST_THINGS = 12
MOST_WORDS = 20
JITTER_PX = 2.0
"""Standard deviation, by axis, of the fovea from a thing in training: about half of the pitch of the map."""


def near(places: Tensor, points_px: Tensor, shrink: int) -> Tensor:
    """The wanted attention (..., places) to points (..., 2)."""
    spread = 0.6 * PITCH * shrink
    return (-(places - points_px[..., None, :]).square().sum(-1) / (2 * spread**2)).softmax(-1)


def numbered(name: str, shapes: tuple[str, ...]) -> list[int]:
    """Colour, shape, and size + 1 of a noun."""
    said = noun(name)
    return [COLORS.index(said.color), shapes.index(said.shape), SIZES.index(said.size) + 1 if said.size else 0]


def gaze_truth(samples: SplitSamples, scenes: list[PictureThings], shapes: tuple[str, ...]) -> dict[str, Tensor]:
    """Nouns and things of n scenes, which a batch needs, (n, ...).

    The nouns of a scene are the things and the targets of its five tasks; its things are all that have a name. Things
    are known by their number in the scene, -1 for none.
    """
    tasks, things = (len(scenes), TASKS_PER_SCENE), (len(scenes), MOST_THINGS)
    found: dict[str, NDArray[np.generic]] = {
        "nouns": np.zeros((*tasks, 3), np.int64), "landmarks": np.zeros((*tasks, 3), np.int64),
        "targets": np.zeros((*tasks, 3), np.int64), "place": np.full(tasks, -1), "related": np.zeros(tasks, np.float32),
        "thing": np.zeros(tasks, np.int64), "target": np.full(tasks, -1), "beside": np.zeros(tasks, np.int64),
        "names": np.full((*things, 2), -1), "places": np.zeros((*things, 2), np.float32),
    }  # fmt: skip
    for scene, seen in enumerate(scenes):
        found["names"][scene, : len(seen.names)] = [numbered(name, shapes)[:2] for name in seen.names]
        found["places"][scene, : len(seen.names)] = seen.places_px
        for number, text in enumerate(tasks_of(samples, scene)):
            command, here = parse(text), (scene, number)
            wanted = noun(command.object)
            found["nouns"][here] = numbered(wanted.name, shapes)
            found["thing"][here] = seen.index(command.object)
            found["beside"][here] = seen.beside(seen.index(command.object))
            if wanted.place:
                found["place"][here] = list(PLACES).index(wanted.place)
            if wanted.landmark:
                found["landmarks"][here], found["related"][here] = numbered(wanted.landmark, shapes), 1
            if command.target:
                found["targets"][here] = numbered(command.target, shapes)
                found["target"][here] = seen.index(command.target)
    return {name: torch.from_numpy(values) for name, values in found.items()}


def parts(planes: Tensor, places_px: Tensor, scenes: Tensor, shrink: int) -> Tensor:
    """(k, channels, FOVEA, FOVEA): the parts of images (n, channels, h, w) around k places, each of a scene."""
    corners = torch.tensor([corner((u, v), shrink) for u, v in places_px.tolist()])
    padded = nn.functional.pad(planes, [FOVEA // 2] * 4).permute(0, 2, 3, 1)
    rows = (corners[:, :1] + torch.arange(FOVEA))[:, :, None]
    columns = (corners[:, 1:] + torch.arange(FOVEA))[:, None]
    return padded[scenes[:, None, None], rows, columns].permute(0, 3, 1, 2)


def gaze_losses(
    network: GazeNetwork, planes: Tensor, truth: dict[str, Tensor], rng: torch.Generator
) -> tuple[Tensor, ...]:
    """Of the attention to things and targets, of that to neighbours, and of the names of all things, seen from a little
    beside their places."""
    features = network.features(planes)
    scene, aimed = torch.arange(len(planes))[:, None], truth["target"] >= 0
    around = near(network.places, truth["places"], int(network.shrink))

    def missed(logits: Tensor, things: Tensor) -> Tensor:
        return -(around[scene, things.clamp(min=0)] * logits.log_softmax(-1)).sum(-1)

    logits = network.look_among(features, *(truth[name] for name in ("nouns", "place", "landmarks", "related")))
    targets = missed(network.look_for(features, truth["targets"]), truth["target"])
    finding = missed(logits, truth["thing"]).mean() + 0.5 * targets[aimed].mean()
    beside = network.look_beside(features, truth["places"][scene, truth["thing"]])
    known = truth["names"][..., 1] >= 0
    places = truth["places"][known]
    places = places + JITTER_PX * int(network.shrink) * torch.randn(places.shape, generator=rng)
    seen = parts(planes, places, scene.expand(known.shape)[known], int(network.shrink))
    color, shape = network.names(seen)
    names = nn.functional.cross_entropy(shape, truth["names"][known][:, 1])
    if network.channels == 3:
        names = names + nn.functional.cross_entropy(color, truth["names"][known][:, 0])
    return finding, 0.5 * missed(beside, truth["beside"]).mean(), names


def scribe_words(samples: SplitSamples, scenes: list[PictureThings]) -> tuple[str, ...]:
    """The words of all instructions and of all right answers, these with their punctuation."""
    found = {word for text in samples.instructions for word in text.split()}
    for scene, seen in enumerate(scenes):
        found |= {word for text in tasks_of(samples, scene) for word in seen.answer(text).lower().split()}
    return tuple(sorted(found))


def scribe_truth(samples: SplitSamples, scenes: list[PictureThings], words: tuple[str, ...]) -> dict[str, Tensor]:
    """Instructions and answers of n scenes as numbers (n, 5, ...), -1 behind the end of an answer, and the number of
    the thing that each word of an answer is about, -1 for none."""
    known = {word: number for number, word in enumerate(words, 2)}
    shape = (len(scenes), TASKS_PER_SCENE, MOST_WORDS)
    asked = np.stack([numbers(text, words) for text in samples.instructions]).reshape(*shape[:2], -1)
    answers, about = np.full(shape, -1), np.full(shape, -1)
    places = np.zeros((len(scenes), MOST_THINGS, 2), np.float32)
    for scene, seen in enumerate(scenes):
        places[scene, : len(seen.names)] = seen.places_px
        for number, text in enumerate(tasks_of(samples, scene)):
            said = seen.answer(text).lower().split()
            answers[scene, number, : len(said) + 1] = [*(known[word] for word in said), END]
            command = parse(text)
            thing = seen.index(command.object)
            about[scene, number, :4], about[scene, number, 5:7] = thing, seen.beside(thing)
            if command.target:  # in the plan, such as "red mat near right"
                target = seen.index(command.target)
                name = seen.sight(target).name.split()
                first = next(slot for slot in range(7, len(said)) if said[slot : slot + 2] == name)
                about[scene, number, first : first + 4] = target
    arrays = {"asked": asked, "answers": answers, "about": about, "places": places}
    return {name: torch.from_numpy(values) for name, values in arrays.items()}


def scribe_losses(
    network: ScribeNetwork, planes: Tensor, truth: dict[str, Tensor], rng: torch.Generator
) -> tuple[Tensor, ...]:
    """Of the next word, and of the attention before words that are about a thing."""
    answers, about = truth["answers"], truth["about"]
    scores, looks = network(planes, truth["asked"], answers.clamp(min=0))
    words = nn.functional.cross_entropy(scores.flatten(0, 2), answers.flatten(), ignore_index=-1)
    around = near(torch.from_numpy(places_px(SHRINK)), truth["places"], SHRINK)
    scene = torch.arange(len(planes))[:, None, None].expand(about.shape)[about >= 0]
    missed = -(around[scene, about[about >= 0]] * looks[about >= 0].log_softmax(-1)).sum(-1)
    return words, 0.3 * missed.mean()
