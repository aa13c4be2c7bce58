"""The Data Agent as a whole: a small pool to a benchmark, broken off at every step, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from computed_roles import embed
from installed import skip_file_without
from scripted_llm import llm_entry, scripted_llm

from merton.cognition.models.base import MODELS
from merton.errors import InputError
from merton.progress import OnProgress, Step
from merton_studies.curation import curate as whole
from merton_studies.curation.agents import Critique
from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.curate import Wanted, curate
from merton_studies.curation.curated import TAXONOMY
from merton_studies.curation.pool import Pool, read_pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.roles import Chosen, Roles
from merton_studies.curation.taxonomy import Taxonomy, read_taxonomy

skip_file_without("sklearn", "no scikit-learn (the extra curation)")
pytest.importorskip("pyarrow", reason="no pyarrow (the extra curation)")
ASKED = {
    "QuantNum": ("How many {} are on the table?", "Count the {} in the picture.", "What number of {} do you see?"),
    "SpatGeo": (
        "Is the {} left of the bowl?",
        "Which side of the bowl is the {} on?",
        "Where is the {}, left or right?",
    ),
    "AffdFunc": ("Can the gripper grasp the {}?", "Could the {} be opened?", "Can one pour from the {}?"),
}
THINGS = ("cup", "peg", "lid", "drawer", "button", "block", "plate", "knob")


class Model:
    made = {"model": "words"}  # noqa: RUF012


@pytest.fixture(autouse=True)
def words_for_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of words in place of the sentence model, which takes seconds to load."""
    monkeypatch.setattr(whole, "embed_texts", embed)
    monkeypatch.setattr(whole, "text_embedder", Model)
    monkeypatch.setattr(whole, "PACKAGES", ("numpy",))


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    questions = [
        Question(id=f"{name}-{kind}-{thing}", source="s", text=text.format(thing), answer_kind="free_text", scene=thing)
        for name, texts in ASKED.items()
        for kind, text in enumerate(texts)
        for thing in THINGS
    ]
    write_pool(Pool.of(questions, [BenchmarkSource(name="s", licence="MIT")]), tmp_path / "pool")
    return read_pool(tmp_path / "pool")


def content(folder: Path) -> dict[str, bytes]:
    """Every file of the result."""
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


class Broken(Exception):
    pass


def broken_at(limit: int) -> Step:
    """A step that breaks off in place of the `limit`-th one."""
    numbers = count(1)

    @contextmanager
    def step(_: str) -> Iterator[OnProgress]:
        if next(numbers) == limit:
            raise Broken
        yield lambda done, total: None

    return step


class Agreed:
    """A proposer and a reviewer that agree at once."""

    name = "agreed"

    def propose(self, *_: object) -> Taxonomy:
        return read_taxonomy("a2eval")

    def review(self, *_: object) -> Critique:
        return Critique()


@contextmanager
def agreed_roles(*_: object) -> Iterator[Roles]:
    yield Roles(Agreed(), Agreed(), zero_shot_voters(embed))


def test_a_curation_broken_off_at_any_step_ends_in_the_same_bytes(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "roles", agreed_roles)
    monkeypatch.setattr(whole, "check", lambda _: None)
    wanted = Wanted(keep=6, chosen=Chosen(proposer="agreed", reviewer="agreed"))
    found = curate(pool, tmp_path / "whole", wanted)
    assert found.rounds
    assert all(row.kept == min(row.assigned, 6) for row in found.rows)
    for breaks in range(20):
        try:
            curate(pool, tmp_path / "broken", wanted, step=broken_at(2**breaks))
        except Broken:
            continue
        break
    assert breaks > 2
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_with_a_taxonomy_nothing_is_induced(pool: Pool, tmp_path: Path) -> None:
    found = curate(pool, tmp_path / "out", Wanted("a2eval", keep=6))
    assert not found.rounds
    assert found.taxonomy.name == whole.read_taxonomy(str(tmp_path / "out" / TAXONOMY)).name
    assert sum(found.balance.kept.values()) == len(found.pool.questions)
    assert {one.meta["assigned"] for one in found.pool.questions} <= set(found.taxonomy.names)


def test_without_a_model_a_pool_with_labels_keeps_its_own(pool: Pool, tmp_path: Path) -> None:
    questions = [one.model_copy(update={"dimension": one.id.split("-")[0]}) for one in pool.questions]
    labelled = Pool.of(questions, pool.sources.values(), pool.folder)
    found = curate(labelled, tmp_path / "out", Wanted(keep=6))
    assert found.taxonomy.names == ("SpatGeo", "QuantNum", "AffdFunc")
    assert found.assignment.dimension == tuple(one.dimension for one in labelled.questions)
    assert found.balance.kept == {"SpatGeo": 6, "QuantNum": 6, "AffdFunc": 6}
    assert found.made["dimensions"].startswith("dimensions: the 3 that the questions are labelled with")
    assert found.made["voters"] == ["the pool's labels"]


def test_without_a_model_and_labels_the_papers_dimensions_are_voted_on(pool: Pool, tmp_path: Path) -> None:
    found = curate(pool, tmp_path / "out", Wanted(keep=6))
    assert found.taxonomy == read_taxonomy("a2eval")
    assert found.made["dimensions"].endswith("named, and 72 of 72 questions have no label")
    assert len(found.assignment.voters) == 5
    with pytest.raises(InputError, match="without --taxonomy, models find the dimensions: name them with --proposer"):
        whole._is_given(Wanted(chosen=Chosen(proposer="alone")))


def test_votes_that_a_model_never_gives_are_said_with_the_benchmark(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    with scripted_llm('{"votes": [{"id": "q1", "dimension": "SpatGeo"}]}') as wire:
        len(MODELS)  # reads the catalogue
        monkeypatch.setitem(MODELS._entries, "sloppy", llm_entry(wire, "sloppy"))
        found = curate(pool, tmp_path / "out", Wanted("a2eval", keep=6, chosen=Chosen(assigners=("sloppy",), voters=1)))
    first, last = found.made["invalid_votes"]
    assert first.startswith("sloppy seed 0 gave no valid vote for 68 of 72 questions: two tries gave 1 of 12 votes")
    assert last == '68 of 72 questions have no valid vote; they are counted under "Other"'
    assert (found.balance.invalid, found.balance.unvoted) == (68, 68)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (Wanted("a2evil", keep=6), "unknown taxonomy 'a2evil'"),
        (Wanted(keep=6, chosen=Chosen(proposer="gtp")), "unknown vlm 'gtp'"),
        (Wanted(keep=6, chosen=Chosen(proposer="describe")), "describe answers questions about pictures alone"),
        (Wanted(keep=6, chosen=Chosen(assigners=("describe", "oracle"), voters=1)), "--voters must be at least that"),
    ],
)
def test_a_wrong_name_does_not_claim_the_folder(pool: Pool, tmp_path: Path, wanted: Wanted, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        curate(pool, tmp_path / "out", wanted)
    curate(pool, tmp_path / "out", Wanted("a2eval", keep=6))


def test_a_folder_takes_one_curation(pool: Pool, tmp_path: Path) -> None:
    curate(pool, tmp_path / "out", Wanted("a2eval", keep=6))
    with pytest.raises(InputError, match="holds a curation with other keep; choose another folder"):
        curate(pool, tmp_path / "out", Wanted("a2eval", keep=7))
    other = Pool.of(pool.questions[:-1], pool.sources.values(), pool.folder)
    with pytest.raises(InputError, match="holds a curation with other pool; choose another folder"):
        curate(other, tmp_path / "out", Wanted("a2eval", keep=6))
