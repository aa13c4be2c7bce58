"""The networks of the learned VLMs in torch, for batches and with gradients; `merton.cognition.models` has the same in
numpy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from merton.cognition.models.gaze import APART_PX, FOVEA, ITSELF_PX, NEARER_PX, SHIFT, places_px
from merton.cognition.models.scribe import END, spots
from merton.world.nouns import COLORS, PLACES, SIZES


class GazeNetwork(nn.Module):
    """`merton.cognition.models.gaze.Network`: images of n scenes, and m nouns about each.

    Args:
        channels: of an image.
        shrink: as `gaze.prepared` has it.
        width: features of a place; the inner layers have shares of it.
        shapes: how many shapes it knows.
    """

    def __init__(self, channels: int, shrink: int, width: int, shapes: int) -> None:
        super().__init__()
        fine, coarse = 2 * width // 5, 4 * width // 5
        self.color = nn.Embedding(len(COLORS), width)
        self.shape = nn.Embedding(shapes, width)
        self.size = nn.Embedding(len(SIZES) + 1, width)
        self.direction = nn.Embedding(len(PLACES), 2)
        self.nearness = nn.Parameter(torch.tensor(0.1))
        self.farness = nn.Parameter(torch.tensor(1.0))
        self.fine1 = nn.Conv2d(4 * channels, fine, 3, padding=1)
        self.fine2 = nn.Conv2d(fine, fine, 3, padding=1)
        self.coarse1 = nn.Conv2d(4 * fine, coarse, 1)
        self.coarse2 = nn.Conv2d(coarse, coarse, 3, padding=1)
        self.coarse3 = nn.Conv2d(coarse, coarse, 3, padding=1)
        self.merge = nn.Conv2d(fine + coarse, width, 1)
        self.occupied = nn.Conv1d(width, 1, 1)
        self.look1 = nn.Conv2d(4 * channels, fine + 8, 3, padding=1)
        self.look2 = nn.Conv2d(fine + 8, coarse + 16, 3, padding=1, stride=2)
        self.look3 = nn.Linear((coarse + 16) * (FOVEA // 4) ** 2, width)
        self.color_seen = nn.Linear(width, len(COLORS))
        self.shape_seen = nn.Linear(width, shapes)
        self.channels = channels
        with torch.no_grad():
            self.direction.weight *= 0.1
            for embedding in (self.color, self.shape, self.size):
                embedding.weight *= 0.3
        self.register_buffer("shrink", torch.tensor(shrink))
        self.register_buffer("places", torch.from_numpy(places_px(shrink)), persistent=False)

    def features(self, planes: Tensor) -> Tensor:
        """Features (n, width, places) of the map of images (n, channels, height, width) -0.5..0.5."""
        halved = nn.functional.avg_pool2d(planes, 2)
        signal = self.fine2(self.fine1(nn.functional.pixel_unshuffle(halved, 2)).relu()).relu()
        coarse = self.coarse1(nn.functional.pixel_unshuffle(signal, 2)).relu()
        coarse = self.coarse3(self.coarse2(coarse).relu()).relu()
        both = torch.cat([signal, nn.functional.interpolate(coarse, scale_factor=2)], 1)
        return self.merge(both).relu().flatten(2)

    def query(self, nouns: Tensor) -> Tensor:
        """Queries (..., width) of nouns (..., 3): numbers of colour, shape, and size + 1."""
        query = self.shape(nouns[..., 1]) + self.size(nouns[..., 2])
        return query + self.color(nouns[..., 0]) if self.channels == 3 else query

    def look_for(self, features: Tensor, nouns: Tensor) -> Tensor:
        """The logits (n, m, places) of the attention to all that m nouns (n, m, 3) may mean."""
        return self.query(nouns) @ features

    def look_among(self, features: Tensor, nouns: Tensor, place: Tensor, landmarks: Tensor, related: Tensor) -> Tensor:
        """The logits (n, m, places) of the attention to the things of m nouns about each scene.

        Args:
            features: (n, width, places).
            nouns, landmarks: (n, m, 3) as `query` has them.
            place: (n, m) number of the word of place, -1 for none.
            related: (n, m) whether the landmark counts.
        """
        logits = self.look_for(features, nouns)
        first = logits.softmax(-1)
        away = (self.look_for(features, landmarks).softmax(-1) @ self.places)[..., None, :] - self.places
        away = (away.square().sum(-1) + 1e-9).sqrt()
        closer = (((first * away).sum(-1, keepdim=True) - away) / NEARER_PX).tanh()
        direction = self.direction(place.clamp(min=0)) * (place >= 0)[..., None]
        along = direction @ self.places.T / APART_PX
        aside = (along - (first * along).sum(-1, keepdim=True)).tanh()
        like = ((logits - logits.amax(-1, keepdim=True)) / 2).exp()
        return logits + SHIFT * like * (aside + self.nearness * related[..., None] * closer)

    def look_beside(self, features: Tensor, things_px: Tensor) -> Tensor:
        """The logits (n, m, places) of the attention to the neighbours of things at places (n, m, 2)."""
        away = (self.places - things_px[..., None, :]).square().sum(-1).sqrt()
        itself = (-0.5 * (away / ITSELF_PX).square()).exp()
        return self.occupied(features) - nn.functional.softplus(self.farness) * away / APART_PX - 2 * SHIFT * itself

    def names(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of the colours and of the shapes in parts (k, channels, FOVEA, FOVEA) of images."""
        signal = self.look2(self.look1(nn.functional.pixel_unshuffle(parts, 2)).relu()).relu()
        seen = self.look3(signal.flatten(1)).relu()
        return self.color_seen(seen), self.shape_seen(seen)


class ScribeNetwork(nn.Module):
    """`merton.cognition.models.scribe.Network`: images of n scenes, and m instructions about each.

    Args:
        words: how many it knows.
    """

    def __init__(self, words: int, word: int = 32, fine: int = 16, width: int = 40, state: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words + 2, word)
        self.fine = nn.Conv2d(12, fine, 3, padding=1)
        self.coarse1 = nn.Conv2d(4 * fine, width, 1)
        self.coarse2 = nn.Conv2d(width, width, 3, padding=1)
        self.coarse3 = nn.Conv2d(width, width, 3, padding=1)
        self.register_buffer("spots", torch.from_numpy(spots()), persistent=False)
        seen = width + self.spots.shape[1]
        self.reader = nn.GRUCell(word, state)
        self.writer = nn.GRUCell(word + seen, state)
        self.query = nn.Linear(2 * state, seen)
        self.next1 = nn.Linear(2 * state + seen, state)
        self.next2 = nn.Linear(state, words + 2)

    def tokens(self, planes: Tensor) -> Tensor:
        """Features and position of each place, (n, places, width + 4), in images (n, 3, height, width) -0.5..0.5."""
        signal = self.fine(nn.functional.pixel_unshuffle(planes, 2)).relu()
        coarse = self.coarse1(nn.functional.pixel_unshuffle(signal, 2)).relu()
        coarse = self.coarse3(self.coarse2(coarse).relu()).relu().flatten(2).transpose(1, 2)
        return torch.cat([coarse, self.spots.expand(len(coarse), -1, -1)], -1)

    def read(self, asked: Tensor) -> Tensor:
        """The states (k, state) after instructions (k, SLOTS)."""
        state = torch.zeros(len(asked), self.reader.hidden_size)
        for numbers in asked.T:
            state = torch.where((numbers != END)[:, None], self.reader(self.embedding(numbers), state), state)
        return state

    def forward(self, planes: Tensor, asked: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        """The scores of each word (n, m, length, words + 2), and the logits of the attention before it (n, m, length,
        places), given the words before it of `answers` (n, m, length)."""
        scenes, tasks, length = answers.shape
        tokens, heard = self.tokens(planes), self.read(asked.flatten(0, 1))
        before = nn.functional.pad(answers, (1, -1), value=END).flatten(0, 1)
        state, seen = heard, torch.zeros(scenes * tasks, tokens.shape[-1])
        scores, looks = [], []
        for slot in range(length):
            state = self.writer(torch.cat([self.embedding(before[:, slot]), seen], 1), state)
            logits = self.query(torch.cat([state, heard], 1)).unflatten(0, (scenes, tasks)) @ tokens.transpose(1, 2)
            seen = (logits.softmax(-1) @ tokens).flatten(0, 1)
            scores.append(self.next2(self.next1(torch.cat([state, seen, heard], 1)).relu()))
            looks.append(logits)
        return torch.stack(scores, 1).unflatten(0, (scenes, tasks)), torch.stack(looks, 2)
