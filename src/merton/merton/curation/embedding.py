"""Questions as vectors: what they say and what they show (A2Eval, section 3.1: the embedding e(x) of equation 5)."""

from __future__ import annotations

from merton.curation.sentences import DIMENSIONS, TextEmbedder, embed_texts

__all__ = ["DIMENSIONS", "TextEmbedder", "embed_texts"]
