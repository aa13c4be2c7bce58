"""The folder of a curated benchmark: its questions, its card and its page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import miniature_curation as miniature
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner
from unguarded import Unguarded

from merton.cli.main import app
from merton.config import load
from merton.errors import InputError
from merton_studies.curation.benchmark import write_benchmark
from merton_studies.curation.card import write_card
from merton_studies.curation.curated import BALANCE, CURATION, MEMORY, REDUNDANCY, read_curated
from merton_studies.curation.induction import read_memory
from merton_studies.curation.page import write_page
from merton_studies.curation.pool import About, Pool, read_pool
from merton_studies.curation.sampling import Kept


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Pool]:
    """The folder of a curated benchmark, and the pool that it is from."""
    folder = tmp_path_factory.mktemp("curation")
    return folder / "out", miniature.make(folder / "pool", folder / "out")


class Page(HTMLParser):
    """The headings, sections and sources of pictures of a page; a tag that is never closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text, self.ids, self.pictures = "", [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "img":
            assert values["alt"]
            self.pictures.append(str(values["src"]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_kept_questions_are_a_pool_of_their_own(made: tuple[Path, Pool]) -> None:
    out, everything = made
    found = read_pool(out)
    assert [question.id for question in found.questions] == ["00", "01", "08", "09", "16", "17"]
    assert [question.meta["assigned"] for question in found.questions[::2]] == list(miniature.DIMENSIONS)
    assert (found.images(found.questions[1]) == everything.images(everything.questions[1])[0]).all()
    rows = pq.read_table(out / "kept.parquet").to_pylist()
    assert rows[2] == {"id": "08", "dimension": "Space", "cluster": 0, "distance": 0.1}
    assert len(list((out / "media").iterdir())) == 3


def test_the_same_benchmark_has_the_same_bytes(made: tuple[Path, Pool], tmp_path: Path) -> None:
    _, everything = made
    kept = [Kept(3, "Space", None, None), Kept(1, "Object", 0, 0.5)]
    for name, order in (("one", kept), ("other", kept[::-1])):
        write_benchmark(everything, order, tmp_path / name, {"seed": 1})
    for file in ("kept.parquet", "questions.parquet", "pool.yaml"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
    assert pq.read_table(tmp_path / "one" / "kept.parquet").to_pylist()[1]["cluster"] is None
    assert load(tmp_path / "one" / "pool.yaml", About).made["seed"] == 1


def test_a_question_kept_twice_or_without_its_picture_is_refused(made: tuple[Path, Pool], tmp_path: Path) -> None:
    _, everything = made
    with pytest.raises(InputError, match="kept twice"):
        write_benchmark(everything, [Kept(1, "Object", 0, 0.0)] * 2, tmp_path / "out", {})
    lost = Pool(everything.questions, everything.sources, tmp_path)
    with pytest.raises(InputError, match="is missing"):
        write_benchmark(lost, [Kept(1, "Object", 0, 0.0)], tmp_path / "out", {})


def test_the_card_says_what_a_user_must_know(made: tuple[Path, Pool], tmp_path: Path) -> None:
    text = write_card(made[0]).read_text()
    front, body = text.removeprefix("---\n").split("---\n", 1)
    assert "license: other" in front
    assert "n<1K" in front
    assert "path: questions.parquet" in front
    assert "| cell | 3 | Apache-2.0 |" in body
    assert "**Pictures without a licence: web.**" in body
    assert re.search(r"\| `Object` \| Object \| Asks for Object. \| 8 \| 2 \| 0\.\d\d \| 2 \|", body)
    curated = read_curated(made[0])
    assert f"{curated.balance.entropy:.3f} in the pool and 1.000 in what is kept" in body
    assert "| seeds · sampling | 0 |" in body
    assert f"| inputs 1 · sha256 | {'0' * 64} |" in body


def test_the_page_has_every_section_and_asks_for_nothing(made: tuple[Path, Pool], tmp_path: Path) -> None:
    out, everything = made
    text = write_page(out, everything, miniature.scores(tmp_path / "scores")).read_text()
    page = Page(text)
    for anchor in ("dimensions", "votes", "history", "redundancy", "maps", "examples", "models", "sources"):
        assert anchor in page.ids
        assert f'href="#{anchor}"' in text
    assert "<script" not in text
    assert not re.search(r"(src|href)=\"(?!data:|#)", text)
    assert miniature.NASTY in page.text, "a question's text is shown as it is"
    assert all(source.startswith("data:image/jpeg;base64,") for source in page.pictures)
    assert "6 of 24 questions, in 3 dimensions" in page.text
    assert "The pictures of web have no licence" in page.text
    assert "redundant: merge Object, Space." in page.text
    assert text.count('class="kept"') == text.count('class="dropped"') == 1
    assert "25 % of the questions have another with a cosine of at least 0.92: 7 pairs" in page.text
    assert "Of 3 planted twins 1 are both kept: 66.7 % avoided, 95 % interval [20.0, 90.0]" in page.text
    assert "0.500 [0.400, 0.600]" in page.text
    assert "50 % of the differences" in page.text
    assert page.text.index("sharp") < page.text.index("blind"), "the best model stands first"
    assert "90 [25, 75]" in page.text
    write_page(out, everything, tmp_path / "scores")
    assert (out / "index.html").read_text() == text


def test_the_page_tells_reasons_references_and_times(made: tuple[Path, Pool], tmp_path: Path) -> None:
    out, everything = made
    scores = miniature.scores(tmp_path / "scores")
    told = json.loads((scores / "scores.json").read_text())
    told["answerers"]["blind"]["reasons"] = [["no <picture>", 2]]
    told["failures"] = {"dead": "the server is gone"}
    (scores / "scores.json").write_text(json.dumps(told))
    one = {"source": "web", "answerer": "sharp", "n": 9, "agreement": 0.75, "interval": [0.5, 0.9], "floor": 0.25}
    one |= {"merton": 0.5, "reference": 0.4, "fidelity": 0.75, "differ": 2, "failed": 1, "missing": 0}
    about = {"whose": "the benchmark's own scorer", "file": "own.py", "function": "hit", "sha256": "ab" * 32}
    found = {"references": {"web": about}, "compared": [{**one, "first_error": "ValueError: <no> rule"}]}
    (scores / "benchmark_fidelity.json").write_text(json.dumps(found))
    for folder, seconds in ((scores, 2.0), (tmp_path / "full", 9.0)):
        folder.mkdir(exist_ok=True)
        (folder / "cost.json").write_text(json.dumps({"answerers": {"sharp": {"questions": 6, "seconds": seconds}}}))
    page = Page(write_page(out, everything, scores, (tmp_path / "full", scores)).read_text())
    assert {"fidelity", "time"} <= set(page.ids)
    assert "blind, questions without a score: 2 × no <picture>" in page.text
    assert "dead has no scores: the server is gone" in page.text
    assert "web: the benchmark's own scorer, own.py, hit, SHA-256 abababababababab" in page.text
    assert "75 [50, 90]" in page.text
    assert "The scorer of web failed on answers of sharp: ValueError: <no> rule" in page.text
    assert "4.5" in page.text
    assert (out / "speedup.csv").read_text().splitlines()[1] == "sharp,6,9.0,6,2.0,4.5"
    (tmp_path / "full" / "cost.json").write_text(json.dumps({"answerers": {}}))
    with pytest.raises(InputError, match="no model has times in"):
        write_page(out, everything, scores, (tmp_path / "full", scores))


def test_card_and_page_say_what_was_not_valid(tmp_path: Path) -> None:
    miniature.make(tmp_path / "pool", tmp_path / "out")
    out = tmp_path / "out"
    rounds = read_memory(out / MEMORY)
    assert rounds[0].critique
    assert rounds[1].balance
    critique = rounds[0].critique.model_copy(update={"dropped": ("finding 2: kind: must be <known>",)})
    balance = rounds[1].balance.model_copy(update={"invalid": 11, "unvoted": 2})
    lines = (rounds[0].model_copy(update={"critique": critique}), rounds[1].model_copy(update={"balance": balance}))
    (out / MEMORY).write_text("".join(f"{one.model_dump_json()}\n" for one in lines))
    (out / BALANCE).write_text(read_curated(out).balance.model_copy(update={"invalid": 11}).model_dump_json())
    told = json.loads((out / CURATION).read_text())
    told["invalid_votes"] = ["smol seed 0 gave no valid vote for 11 of 24 questions"]
    (out / CURATION).write_text(json.dumps(told))
    page = Page(write_page(out).read_text())
    assert "Left out of the review: finding 2: kind: must be <known>" in page.text
    assert "11 votes not valid, 2 questions without a valid vote." in page.text
    assert "smol seed 0 gave no valid vote for 11 of 24 questions." in page.text
    assert "11 votes were not valid, and 0 questions have no valid vote." in write_card(out).read_text()


def test_a_page_without_induction_redundancy_and_scores_leaves_these_out(tmp_path: Path) -> None:
    miniature.make(tmp_path / "pool", tmp_path / "out")
    (tmp_path / "out" / MEMORY).unlink()
    (tmp_path / "out" / REDUNDANCY).unlink()
    page = Page(write_page(tmp_path / "out").read_text())
    assert not {"history", "redundancy", "maps", "models"} & set(page.ids)
    assert {"dimensions", "votes", "examples", "sources"} <= set(page.ids)


def test_annotate_opens_a_curated_benchmark_and_the_boards_read_its_scores(
    made: tuple[Path, Pool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merton_studies.harness.sandbox.Sandbox", Unguarded)
    run = CliRunner()
    out, record = tmp_path / "annotated", str(tmp_path / "lab.sqlite")
    models = ["--model", "oracle-1", "--model", "oracle-0", "--cache", str(tmp_path / "cache.sqlite")]
    told = run.invoke(app, ["annotate", str(made[0]), "--out", str(out), *models], catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert "oracle-1: 1.000" in told.output
    told = run.invoke(app, ["results", "import", record, str(out / "scores.parquet")], catch_exceptions=False)
    assert "2 agents x 6 cases, 12 scores (12 new), 0 blanks" in told.output
    told = run.invoke(app, ["leaderboard", "capabilities", str(out)], catch_exceptions=False)
    assert re.search(r"1 +oracle-1 +100.00 n=6 .*\n.*\n 2 +oracle-0 +0.00 n=6", told.output)
    assert all(name in told.output for name in miniature.DIMENSIONS), "by the dimensions that were assigned"
    told = run.invoke(app, ["curate", "page", str(made[0]), "--scores", str(out)], catch_exceptions=False)
    assert told.exit_code == 0
    assert "oracle-1" in (made[0] / "index.html").read_text()
    told = run.invoke(app, ["annotate", str(made[0]), "--out", str(out), "--model", "oracle-1", "--engine", "ray"])
    assert "leave --engine out" in str(told.exception)


def test_an_unfinished_curation_is_refused_by_name(tmp_path: Path) -> None:
    miniature.make(tmp_path / "pool", tmp_path / "out")
    (tmp_path / "out" / CURATION).write_text("{")
    with pytest.raises(InputError, match=r"curation.json is not JSON"):
        write_card(tmp_path / "out")
    (tmp_path / "out" / CURATION).unlink()
    with pytest.raises(InputError, match=r"has no curation.json; run `merton curate build` to its end"):
        write_page(tmp_path / "out")
