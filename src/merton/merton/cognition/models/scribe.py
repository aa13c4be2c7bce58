"""A learned VLM that writes its answer word by word, and looks at the picture before each.

Ours. A small convolutional network makes 14 x 24 tokens of the middle of the image. One recurrent network (GRU) reads
the instruction, another writes the answer: its state asks the tokens for a place, and what is there decides the next
word together with the state. So it has to learn itself how words refer to the picture, and its errors add up along the
answer; `merton.cognition.models.gaze` has a grammar for both. `tools/train/train_vlm.py` trains it on the scenes of the
split `train`; docs/reference/learned_vlms.md is the model card. Runs in plain numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.gaze import COLUMNS_PX, places_px, prepared
from merton.cognition.models.learned import LearnedVlm
from merton.models.convolution import fold
from merton.models.networks import Floats, NumpyNetwork, relu, softmax
from merton.world.observation import Image
from merton.world.tasks import find

SHRINK = 2
"""It sees every second pixel each way, as `prepared` makes them."""
SLOTS = 16
"""Most words of an instruction that it reads."""
END, UNKNOWN = 0, 1
"""Numbers of the end of a text, which is also its start, and of an unknown word; the first word has number 2."""


def numbers(text: str, words: Sequence[str]) -> NDArray[np.int64]:
    """The numbers (SLOTS,) of the words of an instruction, `END` behind the last."""
    known = {word: number for number, word in enumerate(words, 2)}
    found = [known.get(word.strip(".,"), UNKNOWN) for word in text.lower().split()[:SLOTS]]
    return np.array(found + [END] * (SLOTS - len(found)), np.int64)


class Network(NumpyNetwork):
    """The network in numpy; `tools/train/vlm_networks.py` has the same in torch."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._spots = spots()

    def tokens(self, image: Image) -> Floats:
        """A row for each place of the image, (places, width + 4): the features there, and the place itself."""
        planes = prepared(image, 3, SHRINK).astype(np.float32) / np.float32(255) - np.float32(0.5)
        folded = fold(relu(self.convolve("fine", fold(planes))))
        flat = relu(self.linear("coarse1", folded.reshape(len(folded), -1)))
        coarse = relu(self.convolve("coarse2", flat.reshape(-1, *folded.shape[1:])))
        coarse = relu(self.convolve("coarse3", coarse))
        return np.concatenate([coarse.reshape(len(coarse), -1).T, self._spots], 1)

    def read(self, asked: NDArray[np.int64]) -> Floats:
        """The state after the words of an instruction."""
        state = np.zeros(self.weights["reader.weight_hh"].shape[1], np.float32)
        for number in asked[asked != END]:
            state = self._step("reader", self.weights["embedding.weight"][number], state)
        return state

    def write(self, tokens: Floats, heard: Floats, most: int) -> tuple[list[int], bool]:
        """At most `most` words after the instruction `heard`, the likeliest each time, and whether the answer ended."""
        written: list[int] = []
        word, state, seen = END, heard, np.zeros(tokens.shape[1], np.float32)
        while len(written) < most:
            state = self._step("writer", np.concatenate([self.weights["embedding.weight"][word], seen]), state)
            logits = tokens @ self.linear("query", np.concatenate([state, heard]))
            seen = softmax(logits) @ tokens
            hidden = relu(self.linear("next1", np.concatenate([state, seen, heard])))
            scores = self.linear("next2", hidden)
            scores[UNKNOWN] = -np.inf
            word = int(np.argmax(scores))
            if word == END:
                return written, True
            written.append(word)
        return written, False

    def _step(self, name: str, values: Floats, state: Floats) -> Floats:
        """One step of a GRU, with the gates in the order of torch: reset, update, new."""
        weights = self.weights
        given = np.split(weights[f"{name}.weight_ih"] @ values + weights[f"{name}.bias_ih"], 3)
        kept = np.split(weights[f"{name}.weight_hh"] @ state + weights[f"{name}.bias_hh"], 3)
        reset, update = _sigmoid(given[0] + kept[0]), _sigmoid(given[1] + kept[1])
        return np.asarray((1 - update) * np.tanh(given[2] + reset * kept[2]) + update * state, np.float32)


class Scribe(LearnedVlm[Network]):
    """Reads the instruction inside a question, and writes an answer about the first image."""

    kind = "scribe"
    network_class = Network

    def say(self, image: Image, question: str, most: int) -> tuple[str, bool]:
        """See `LearnedVlm.say`; of a question without an instruction of `merton.world.tasks` it reads the first
        words."""
        network, command = self.network, find(question)
        asked = numbers(question if command is None else command.instruction, network.words)
        written, ended = network.write(network.tokens(image), network.read(asked), most)
        text = " ".join(network.words[number - 2] for number in written)
        return text[:1].upper() + text[1:], ended


def spots() -> Floats:
    """(places, 4): right of and below the centre of the image in half widths of the part that is seen, and the squares
    of both, so that a query can ask for a place or its surroundings."""
    places = 2 * places_px(SHRINK) / np.float32(COLUMNS_PX)
    return np.concatenate([places, np.square(places)], 1)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-values)), np.float32)
