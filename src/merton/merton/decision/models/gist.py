"""A learned policy that regresses its motion from global features of the picture, without calibration or geometry.

Ours, in the form of most vision-language-action networks: convolutions over the picture as it is, attention that pools
their features together with a learned code of each position, as the queries of a decoder do in ACT (Zhao et al., 2023,
section IV), and layers that turn the pooled numbers and the words into the numbers of the chunk. The attention looks
twice at the same features: its first queries come from the words alone, the second ones also from the first answer, so
that "left" and "nearest to" can be learned. No place is computed: the weights alone know where on the table a position
of the picture is. Attention may also rest on nothing; the less of the picture fits a query, the nearer is its answer to
zero, and the motion to the one that the words alone suggest.

It shares the reading of words and the convolutions with `glance`; docs/reference/learned_policies.md is the model card.
Runs in plain numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from merton.decision.models import picture_view
from merton.decision.models.glance import ROLES, Glance, SceneNetwork
from merton.decision.models.segments import SEGMENT_SIZE, SEGMENTS
from merton.models.networks import Floats, relu, softmax
from merton.world.observation import Image
from merton.world.tasks import VERBS


class Gist(Glance):
    """Gives the whole motion from the first picture from above; refuses verbs that it did not learn well enough.

    Args:
        member: name of its weights in `FOLDER`.
        verbs: the verbs that it does.
    """

    family: ClassVar[str] = "gist"

    def __init__(self, member: str, verbs: Sequence[str] = VERBS) -> None:
        super().__init__(member, verbs)
        self.view = picture_view.part

    @cached_property
    def network(self) -> GistNetwork:
        """Its network, read when it is needed first."""
        return GistNetwork(self._weights)


class GistNetwork(SceneNetwork):
    """From pooled features to the motion."""

    def segments(self, image: Image, numbers: NDArray[np.int64], hand: Floats) -> Floats:
        """As `SceneNetwork.segments`; the hand is not used."""
        text, queries, _ = self.read(numbers)
        features = self.features(image)
        seen = np.concatenate([features, self.weights["code"]])
        first = self.pool(queries @ features, seen, 0)
        again = relu(self.linear("again", np.concatenate([text, first])))
        second = self.pool(self.linear("queries", again).reshape(ROLES, -1) @ seen, seen, 1)
        pooled = self.linear("pooled", np.concatenate([first, second]))
        selected = pooled * self.linear("select", text)
        hidden = relu(self.linear("motion1", np.concatenate([selected, pooled, text])))
        motion = self.linear("motion2", np.concatenate([selected, hidden])).reshape(SEGMENTS, SEGMENT_SIZE)
        script = self.linear("script", text).reshape(SEGMENTS, SEGMENT_SIZE)
        return np.asarray(motion * self.weights["spread"] + script, np.float32)

    def pool(self, logits: Floats, seen: Floats, look: int) -> Floats:
        """The mean (ROLES * channels,) of what is seen (channels, positions) under the attention of `logits`
        (ROLES, positions), which may also rest on nothing."""
        nothing = np.full((len(logits), 1), self.weights["nothing"][look])
        attention = softmax(np.hstack([logits, nothing]))[:, :-1]
        return np.asarray(attention @ seen.T, np.float32).ravel()
