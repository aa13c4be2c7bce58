"""The networks of the learned policies in torch, for batches and with gradients; `merton.decision.models` has the same
in numpy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from merton.decision.models import table_view
from merton.decision.models.glance import (
    CENTER_M,
    COLUMNS,
    HAND,
    NEARER_M,
    PLACE_SCALE_M,
    ROLES,
    ROWS,
    SHIFT,
    STRIDE,
    WINDOW,
)
from merton.decision.models.segments import SEGMENT_SIZE, SEGMENTS

WORD, CONTEXT, TEXT = 24, 64, 64
FINE, COARSE, CHANNELS = 16, 32, 40
HIDDEN = 192
CODE = 32
"""Numbers that tell a network of pooled features where something is; learned for every position of the map."""


class SceneNetwork(nn.Module):
    """`merton.decision.models.glance.SceneNetwork`: the words of m tasks in each of n scenes, and their images.

    A network calls `_add_words` and `_add_eyes` when it makes its layers: the order decides its first weights.
    """

    def _add_words(self, words: int) -> None:
        self.embedding = nn.Embedding(words + 2, WORD)
        self.context = nn.Linear((2 * WINDOW + 1) * WORD, CONTEXT)
        self.gates = nn.Linear(CONTEXT, ROLES)
        self.meaning = nn.Embedding(words + 2, CHANNELS)

    def _add_eyes(self, cameras: int) -> None:
        self.fine1 = nn.Conv2d(3 * cameras * STRIDE**2, FINE, 3, padding=1)
        self.fine2 = nn.Conv2d(FINE, FINE, 3, padding=1)
        self.coarse1 = nn.Conv2d(4 * FINE, COARSE, 1)
        self.coarse2 = nn.Conv2d(COARSE, COARSE, 3, padding=1)
        self.coarse3 = nn.Conv2d(COARSE, COARSE, 3, padding=1)
        self.merge = nn.Conv2d(FINE + COARSE, CHANNELS, 1)

    def read(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sentence, queries and gates of the words (batch, SLOTS), as `SceneNetwork.read`, for a batch."""
        words = nn.functional.pad(self.embedding(numbers), (0, 0, WINDOW, WINDOW))
        windows = words.unfold(1, 2 * WINDOW + 1, 1).transpose(2, 3).flatten(2)
        context = self.context(windows).relu()
        there = (numbers > 0)[..., None].float()
        gates = self.gates(context).sigmoid() * there
        queries = gates.transpose(1, 2) @ self.meaning(numbers)
        text = self.sentence((context * there).sum(1)).relu()
        return text, queries, gates

    def features(self, images: Tensor) -> Tensor:
        """Features (n, channels, positions) of images (n, 3 cameras, height, width) 0..1."""
        signal = self.fine2(self.fine1(nn.functional.pixel_unshuffle(images - 0.5, STRIDE)).relu()).relu()
        coarse = self.coarse1(nn.functional.pixel_unshuffle(signal, 2)).relu()
        coarse = self.coarse3(self.coarse2(coarse).relu()).relu()
        both = torch.cat([signal, nn.functional.interpolate(coarse, scale_factor=2)], 1)
        return self.merge(both).relu().flatten(2)


class GlanceNetwork(SceneNetwork):
    """`merton.decision.models.glance.Network`: images of n scenes from some cameras, and m tasks in each."""

    def __init__(self, words: int, cameras: int, mean: Tensor, spread: Tensor, *, knows_hand: bool = False) -> None:
        super().__init__()
        self._add_words(words)
        self.direction = nn.Embedding(words + 2, 2)
        self.sentence = nn.Linear(CONTEXT, TEXT)
        self.nearness = nn.Embedding(words + 2, 1)
        self._add_eyes(cameras)
        self.script = nn.Linear(TEXT, SEGMENTS * SEGMENT_SIZE)
        self.mixture = nn.Linear(TEXT, SEGMENTS * 2 * 2 * ROLES)
        self.knows_hand = knows_hand
        self.motion1 = nn.Linear(TEXT + 2 * ROLES + ROLES * CHANNELS + HAND * knows_hand, HIDDEN)
        self.motion2 = nn.Linear(HIDDEN, HIDDEN)
        self.motion3 = nn.Linear(HIDDEN, SEGMENTS * SEGMENT_SIZE)
        with torch.no_grad():
            self.script.weight *= 0.1
            self.script.bias.copy_(mean.repeat(SEGMENTS))
            self.mixture.weight *= 0.1
            self.motion3.weight *= 0.1
            self.direction.weight *= 0.1
            self.nearness.weight *= 0.01
            self.meaning.weight *= 0.5
        self.register_buffer("spread", spread)
        self.register_buffer("center", torch.tensor(CENTER_M), persistent=False)
        rows, columns = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
        pixels = STRIDE * torch.stack([columns.flatten(), rows.flatten()], -1) + 0.5 * (STRIDE - 1)
        self.register_buffer("places", torch.from_numpy(table_view.places(pixels.numpy())).float(), persistent=False)

    def forward(self, images: Tensor, numbers: Tensor, hands: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The motions of m tasks in each of n scenes, for images (n, 3 cameras, height, width), words (n, m, SLOTS) and
        hands (n, m, HAND).

        Returns:
            Segments (n m, SEGMENTS, SEGMENT_SIZE), places (n m, ROLES, 2) [m], and the logits of their attention
            (n m, ROLES, positions).
        """
        scenes, tasks = numbers.shape[:2]
        text, queries, gates = self.read(numbers.flatten(0, 1))
        direction, nearness = self.selection(numbers.flatten(0, 1), gates)
        features = self.features(images)
        first = (queries.reshape(scenes, tasks * ROLES, -1) @ features).reshape(scenes * tasks, ROLES, -1)
        seen_first, landmark = first[:, 0].softmax(-1), first[:, 2].softmax(-1) @ self.places
        away = ((self.places - landmark[:, None]).square().sum(-1) + 1e-9).sqrt()
        offsets = self.places - (seen_first @ self.places)[:, None]
        aside = (offsets @ direction[:, :, None])[..., 0].tanh()
        closer = (((seen_first * away).sum(-1, keepdim=True) - away) / NEARER_M).tanh()
        like = ((first[:, 0] - first[:, 0].amax(-1, keepdim=True)) / 2).exp()
        handled = first[:, 0] + SHIFT * like * (aside + nearness * closer)
        logits = torch.stack([handled, first[:, 1], first[:, 2]], 1)
        attention = logits.softmax(-1)
        places = attention @ self.places
        seen = (attention.reshape(scenes, tasks * ROLES, -1) @ features.transpose(1, 2)).reshape(scenes * tasks, -1)
        return self._motion(text, places, seen, hands.flatten(0, 1)), places, logits

    def selection(self, numbers: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
        """As `Network.selection`, for a batch: (batch, 2) and (batch, 1)."""
        direction = 10 * (gates[:, None, :, 0] @ self.direction(numbers))[:, 0]
        return direction, 10 * (self.nearness(numbers) * (numbers > 0)[..., None].float()).sum(1)

    def _motion(self, text: Tensor, places: Tensor, seen: Tensor, hands: Tensor) -> Tensor:
        centered = (places - self.center).flatten(1)
        known = [hands] if self.knows_hand else []
        hidden = torch.cat([text, centered / PLACE_SCALE_M, seen, *known], 1)
        raw = self.motion3(self.motion2(self.motion1(hidden).relu()).relu())
        script = self.script(text).reshape(-1, SEGMENTS, SEGMENT_SIZE)
        segments = raw.reshape(-1, SEGMENTS, SEGMENT_SIZE) * self.spread + script
        mixture = self.mixture(text).reshape(-1, SEGMENTS, 2, 2 * ROLES)
        ends = segments[..., :2] + (mixture @ centered[:, None, :, None])[..., 0]
        return torch.cat([ends, segments[..., 2:]], -1)


class GistNetwork(SceneNetwork):
    """`merton.decision.models.gist.GistNetwork`: pictures of n scenes from one camera, and m tasks in each."""

    def __init__(self, words: int, mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self._add_words(words)
        self.sentence = nn.Linear(CONTEXT, TEXT)
        self._add_eyes(1)
        self.code = nn.Parameter(first_code())
        self.nothing = nn.Parameter(torch.full((2,), 4.0))
        seen = ROLES * (CHANNELS + CODE)
        self.again = nn.Linear(TEXT + seen, 128)
        self.queries = nn.Linear(128, seen)
        self.pooled = nn.Linear(2 * seen, 128)
        self.select = nn.Linear(TEXT, 128)
        self.motion1 = nn.Linear(2 * 128 + TEXT, HIDDEN)
        self.motion2 = nn.Linear(HIDDEN + 128, SEGMENTS * SEGMENT_SIZE)
        self.script = nn.Linear(TEXT, SEGMENTS * SEGMENT_SIZE)
        self.places = nn.Linear(128, 2 * ROLES)
        with torch.no_grad():
            self.meaning.weight *= 0.5
            self.script.weight *= 0.1
            self.script.bias.copy_(mean.repeat(SEGMENTS))
            self.motion2.weight *= 0.3
        self.register_buffer("spread", spread)

    def forward(self, images: Tensor, numbers: Tensor, hands: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `GlanceNetwork.forward`; the places are a second task in training only, the motion does not use them."""
        scenes, tasks = numbers.shape[:2]
        text, queries, _ = self.read(numbers.flatten(0, 1))
        features = self.features(images)
        seen = torch.cat([features, self.code.expand(scenes, -1, -1)], 1)
        logits = queries.reshape(scenes, tasks * ROLES, -1) @ features
        first = self._pool(logits, seen, 0).reshape(scenes * tasks, -1)
        again = self.queries(self.again(torch.cat([text, first], 1)).relu())
        logits_again = again.reshape(scenes, tasks * ROLES, -1) @ seen
        second = self._pool(logits_again, seen, 1).reshape(scenes * tasks, -1)
        pooled = self.pooled(torch.cat([first, second], 1))
        selected = pooled * self.select(text)
        hidden = self.motion1(torch.cat([selected, pooled, text], 1)).relu()
        motion = self.motion2(torch.cat([selected, hidden], 1)).reshape(-1, SEGMENTS, SEGMENT_SIZE)
        segments = motion * self.spread + self.script(text).reshape(-1, SEGMENTS, SEGMENT_SIZE)
        known, chosen = (each.reshape(scenes * tasks, ROLES, -1) for each in (logits, logits_again))
        supervised = torch.cat([chosen[:, :1], known[:, 1:]], 1)
        places = torch.tensor(CENTER_M) + PLACE_SCALE_M * self.places(pooled).reshape(-1, ROLES, 2)
        return segments, places, supervised

    def _pool(self, logits: Tensor, seen: Tensor, look: int) -> Tensor:
        nothing = self.nothing[look].expand(*logits.shape[:2], 1)
        return torch.cat([logits, nothing], -1).softmax(-1)[..., :-1] @ seen.transpose(1, 2)


def first_code() -> Tensor:
    """A code (CODE, positions) with which the training begins: coordinates, their products and waves, and noise."""
    rows, columns = torch.meshgrid(torch.linspace(-1, 1, ROWS), torch.linspace(-1, 1, COLUMNS), indexing="ij")
    x, y = columns.flatten(), rows.flatten()
    phases = [torch.pi / 2 * k * way for k in (1, 2, 4) for way in (x, y, x + y, x - y)]
    waves = [wave for phase in phases for wave in (phase.sin(), phase.cos())]
    smooth = torch.stack([x, y, *waves, x * x, y * y, x * y])
    return torch.cat([smooth, 0.1 * torch.randn(CODE - len(smooth), len(x))])
