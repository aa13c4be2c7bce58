"""A learned VLM that writes its answer word by word, and looks at the picture before each.

Ours. A small convolutional network makes 14 x 24 tokens of the middle of the image. One recurrent network (GRU) reads
the instruction, another writes the answer: its state asks the tokens for a place, and what is there decides the next
word together with the state. So it has to learn itself how words refer to the picture, and its errors add up along the
answer; `merton.cognition.models.gaze` has a grammar for both. `tools/train_vlm.py` trains it on the scenes of the split
`train`; docs/learned_vlms.md is the model card. Runs in plain numpy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.base import MAX_TOKENS, Answer, ModelEntry, VisionLanguageModel
from merton.cognition.models.gaze import COLUMNS_PX, FOLDER, places_px, prepared
from merton.errors import InputError, UnknownNameError
from merton.models.convolution import convolve, fold, unfolded_weight
from merton.world.observation import Image
from merton.world.tasks import find

Floats = NDArray[np.float32]

SHRINK = 2
"""It sees every second pixel each way, as `prepared` makes them."""
SLOTS = 16
"""Most words of an instruction that it reads."""
END, UNKNOWN = 0, 1
"""Numbers of the end of a text, which is also its start, and of an unknown word; the first word has number 2."""


class Scribe(VisionLanguageModel):
    """Reads the instruction inside a question, and writes an answer about the first image.

    Args:
        member: name of its weights in the folder of this module.
    """

    def __init__(self, member: str) -> None:
        self.name = member
        if not (FOLDER / f"{member}.npz").exists():
            raise UnknownNameError("member", member, sorted(path.stem for path in FOLDER.glob("scribe*.npz")))

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> Scribe:
        """The member of the entry's name."""
        return cls(entry.name)

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """Answer a question about the first image.

        Args:
            images: (height, width, 3) uint8 RGB of any size, from above with the robot at the bottom; the first counts.
            question: its instruction of `merton.world.tasks` is read; without one, its first words.
            max_tokens: most words in the answer, >= 1.

        Raises:
            InputError: no image, or no room for an answer.
        """
        started = time.perf_counter()
        if not images or max_tokens < 1:
            raise InputError(f"{self.name} needs an image and room for at least one word")
        network = load_network(FOLDER / f"{self.name}.npz")
        command = find(question)
        asked = numbers(question if command is None else command.instruction, network.words)
        written, ended = network.write(network.tokens(images[0]), network.read(asked), max_tokens)
        text = " ".join(network.words[number - 2] for number in written)
        return Answer(text[:1].upper() + text[1:], time.perf_counter() - started, truncated=not ended)


def numbers(text: str, words: Sequence[str]) -> NDArray[np.int64]:
    """The numbers (SLOTS,) of the words of an instruction, `END` behind the last."""
    known = {word: number for number, word in enumerate(words, 2)}
    found = [known.get(word.strip(".,"), UNKNOWN) for word in text.lower().split()[:SLOTS]]
    return np.array(found + [END] * (SLOTS - len(found)), np.int64)


class Network:
    """The network in numpy; `tools/vlm_networks.py` has the same in torch."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as stored:
            self.words = tuple(str(word) for word in stored["words"])
            self._weights = {name: stored[name].astype(np.float32) for name in stored.files if name != "words"}
        for name in ("fine.weight", "coarse2.weight", "coarse3.weight"):
            self._weights[name] = unfolded_weight(self._weights[name])
        self._spots = spots()

    def tokens(self, image: Image) -> Floats:
        """What is where, (places, width + 4): the features of each place, and the place itself."""
        planes = prepared(image, 3, SHRINK).astype(np.float32) / np.float32(255) - np.float32(0.5)
        folded = fold(self._convolve("fine", fold(planes)))
        weight, bias = self._weights["coarse1.weight"][:, :, 0, 0], self._weights["coarse1.bias"][:, None]
        flat = np.maximum(weight @ folded.reshape(len(folded), -1) + bias, 0)
        coarse = self._convolve("coarse3", self._convolve("coarse2", flat.reshape(-1, *folded.shape[1:])))
        return np.concatenate([coarse.reshape(len(coarse), -1).T, self._spots], 1)

    def read(self, asked: NDArray[np.int64]) -> Floats:
        """The state after the words of an instruction."""
        state = np.zeros(self._weights["reader.weight_hh"].shape[1], np.float32)
        for number in asked[asked != END]:
            state = self._step("reader", self._weights["embedding.weight"][number], state)
        return state

    def write(self, tokens: Floats, heard: Floats, most: int) -> tuple[list[int], bool]:
        """At most `most` words after the instruction `heard`, the likeliest each time, and whether the answer ended."""
        written: list[int] = []
        word, state, seen = END, heard, np.zeros(tokens.shape[1], np.float32)
        while len(written) < most:
            state = self._step("writer", np.concatenate([self._weights["embedding.weight"][word], seen]), state)
            logits = tokens @ self._linear("query", np.concatenate([state, heard]))
            raised = np.exp(logits - logits.max())
            seen = np.asarray((raised / raised.sum()) @ tokens, np.float32)
            hidden = np.maximum(self._linear("next1", np.concatenate([state, seen, heard])), 0)
            scores = self._linear("next2", hidden)
            scores[UNKNOWN] = -np.inf
            word = int(np.argmax(scores))
            if word == END:
                return written, True
            written.append(word)
        return written, False

    def _step(self, name: str, values: Floats, state: Floats) -> Floats:
        """One step of a GRU, with the gates in the order of torch: reset, update, new."""
        weights = self._weights
        given = np.split(weights[f"{name}.weight_ih"] @ values + weights[f"{name}.bias_ih"], 3)
        kept = np.split(weights[f"{name}.weight_hh"] @ state + weights[f"{name}.bias_hh"], 3)
        reset, update = _sigmoid(given[0] + kept[0]), _sigmoid(given[1] + kept[1])
        return np.asarray((1 - update) * np.tanh(given[2] + reset * kept[2]) + update * state, np.float32)

    def _linear(self, name: str, values: Floats) -> Floats:
        return np.asarray(self._weights[f"{name}.weight"] @ values + self._weights[f"{name}.bias"], np.float32)

    def _convolve(self, name: str, signal: Floats) -> Floats:
        return np.maximum(convolve(signal, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"][:, None]), 0)


def spots() -> Floats:
    """(places, 4): right of and below the centre of the image in half widths of the part that is seen, and the squares
    of both, so that a query can ask for a place or its surroundings."""
    places = 2 * places_px(SHRINK) / np.float32(COLUMNS_PX)
    return np.concatenate([places, np.square(places)], 1)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)), np.float32)


@lru_cache(maxsize=8)
def load_network(path: Path) -> Network:
    """The network of a file of weights, read once."""
    return Network(path)
