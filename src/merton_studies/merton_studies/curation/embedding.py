"""Questions as vectors: of their text beside their pictures (A2Eval, section 3.1: e(x) of equation 5).

The paper concatenates all-MiniLM-L6-v2 of the text and CLIP of the picture, "mean over 32 frames" for a video, and says
no more. Ours:

- the text is situation, question and choices (`Question.full_text`);
- several pictures count as their mean; of a video at most 32 frames, evenly spread from the first to the last;
- each side is scaled to length 1, the two stand side by side with the weights (1, 1), and the whole is scaled to
  length 1 again; a question without pictures has zeros there, so that two of them are compared by text alone;
- a pool in which no question has a picture has vectors of the text alone.

Vectors are kept in a file under the hash of the text or picture and of the model, so that nothing is embedded
twice, and work that was killed goes on.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from merton.processes import usable_cores
from merton.progress import OnProgress, Step, quiet
from merton_studies.annotate.cache import Cache, CachedResponse
from merton_studies.curation.pictures import ClipPictures, LitePictures, PictureEmbedder
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Medium, Question
from merton_studies.curation.sentences import DIMENSIONS, TextEmbedder, embed_texts, text_embedder

__all__ = ["DIMENSIONS", "Embeddings", "TextEmbedder", "embed", "embed_texts", "picture_embedder"]

Vectors = NDArray[np.float32]

FRAMES = 32
"""Most frames of a video that count (the paper's number)."""
_FORM = "merton embedding 1"
_TEXTS, _PICTURES = 256, 32
"""So many are computed before they are kept."""


class Texts(Protocol):
    """A model that turns texts into vectors; see `TextEmbedder`."""

    made: dict[str, str]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, d) rows of norm 1."""


@dataclass(frozen=True)
class Embeddings:
    """The vectors of a pool.

    Attributes:
        vectors: (n, d) float32 rows of norm 1, in the order of the pool's questions.
        text: how many of the d values are of the text; those of the picture follow.
        made: models, hashes of their weights, versions and settings.
    """

    vectors: Vectors
    text: int
    made: dict[str, Any]


def picture_embedder(clip: Path | None) -> PictureEmbedder:
    """CLIP from a folder; without one, EfficientNet-Lite0.

    Raises:
        InputError: no CLIP checkpoint in the folder.
        MissingDependencyError: a package of the extra `curation` is not installed.
    """
    return LitePictures() if clip is None else ClipPictures(clip)


def embed(
    pool: Pool,
    cache: Path | None = None,
    step: Step = quiet,
    pictures: PictureEmbedder | None = None,
    texts: Texts | None = None,
) -> Embeddings:
    """The vectors of all questions: the same bytes in any order, and with any content of the cache.

    Args:
        pool: with its pictures on disk.
        cache: file for what is computed, made if need be; None keeps nothing.
        step: shows the progress of texts and of pictures.
        pictures: `picture_embedder`'s without CLIP by default; not loaded for a pool without pictures.
        texts: the sentence model by default.

    Raises:
        InputError: a picture is missing or has changed.
        MissingDependencyError: a package of the extra `curation` is not installed.
    """
    shown = [_frames(question) for question in pool.questions]
    with nullcontext() if cache is None else Cache(cache) as store:
        said = _texts([question.full_text for question in pool.questions], texts or text_embedder(), store, step)
        made: dict[str, Any] = {"form": _FORM, "text": (texts or text_embedder()).made, "pictures": None}
        if not any(shown):
            return Embeddings(said, said.shape[1], made)
        pictures = pictures or picture_embedder(None)
        seen = _pictures(pool, {medium.sha256: medium for media in shown for medium in media}, pictures, store, step)
    parts = np.zeros((len(shown), pictures.dimensions), np.float32)
    for index, media in enumerate(shown):
        if media:
            parts[index] = unit(np.mean([unit(seen[medium.sha256]) for medium in media], axis=0, dtype=np.float64))
    made |= {
        "pictures": pictures.made,
        "most_frames": FRAMES,
        "weights": [1, 1],
        "questions_without_pictures": sum(not media for media in shown),
    }
    return Embeddings(unit(np.hstack([unit(said), parts])), said.shape[1], made)


def unit(rows: NDArray[np.floating[Any]]) -> Vectors:
    """Rows, or one row, scaled to length 1; zeros stay zeros."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=-1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0), np.float32)


def _frames(question: Question) -> tuple[Medium, ...]:
    """The pictures that count."""
    media = question.media
    if not question.video or len(media) <= FRAMES:
        return media
    return tuple(media[place] for place in np.linspace(0, len(media) - 1, FRAMES).round().astype(int))


def _texts(texts: Sequence[str], model: Texts, store: Cache | None, step: Step) -> Vectors:
    # by length, so that a piece of work has few shapes of batches
    contents = sorted(dict.fromkeys(texts), key=lambda text: (len(text), text))
    keys = {_key("text", model.made, text): text for text in contents}
    with step("embedding texts") as on_progress:
        found = _kept(keys, store, _TEXTS, model.embed, on_progress)
    by_text = {text: found[key] for key, text in keys.items()}
    return np.stack([by_text[text] for text in texts]) if texts else np.zeros((0, DIMENSIONS), np.float32)


def _pictures(
    pool: Pool, media: Mapping[str, Medium], model: PictureEmbedder, store: Cache | None, step: Step
) -> dict[str, Vectors]:
    """Hash of each picture to its vector."""
    keys = {_key("picture", model.made, sha256): sha256 for sha256 in sorted(media)}
    with ThreadPoolExecutor(usable_cores()) as workers, step("embedding pictures") as on_progress:

        def compute(hashes: Sequence[str]) -> Iterable[Vectors]:
            return workers.map(lambda sha256: model.embed(pool.image(media[sha256])), hashes)

        found = _kept(keys, store, _PICTURES, compute, on_progress)
    return {sha256: found[key] for key, sha256 in keys.items()}


def _kept(
    keys: Mapping[str, str],
    store: Cache | None,
    piece: int,
    compute: Callable[[Sequence[str]], Iterable[Vectors]],
    on_progress: OnProgress,
) -> dict[str, Vectors]:
    """Key to vector: from the store, or computed and stored piece by piece."""
    stored = store.find(list(keys)) if store else {}
    found = {key: np.frombuffer(base64.b64decode(kept.response), np.float32) for key, kept in stored.items()}
    missing = [key for key in keys if key not in found]
    on_progress(len(found), len(keys))
    for start in range(0, len(missing), piece):
        some = missing[start : start + piece]
        fresh = dict(zip(some, compute([keys[key] for key in some]), strict=True))
        if store:
            store.add(
                (key, CachedResponse(base64.b64encode(row.tobytes()).decode(), 0.0)) for key, row in fresh.items()
            )
        found |= fresh
        on_progress(len(found), len(keys))
    return found


def _key(kind: str, made: Mapping[str, str], content: str) -> str:
    """The hash of a content and of the model that embeds it."""
    parts = [_FORM, kind, *(f"{name} {value}" for name, value in sorted(made.items())), content]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
