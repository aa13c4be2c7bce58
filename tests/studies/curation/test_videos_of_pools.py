"""Videos from import to model: three short videos whose frames carry their numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as PillowImage
from typer.testing import CliRunner

pytest.importorskip("av", reason="PyAV is not installed")

from numbered_videos import number_of, numbered, write_numbered
from unguarded import Unguarded

from merton.cli.main import app
from merton.errors import InputError
from merton_studies.curation.importing.importers import import_pool
from merton_studies.curation.page import _shown
from merton_studies.curation.pool import Pool, read_pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.harness.evaluation import evaluate
from merton_studies.harness.reply import Reply
from merton_studies.release.benchmark import _rows

LABS = BenchmarkSource(name="labs", licence="MIT")
EPISODES = {"hm3d-v0/000-kitchen": ".mp4", "hm3d-v0/001-hall": ".webm", "scannet-v0/002-office": ".avi"}
"""Episode to the ending of its video; the first frames have the numbers 0, 60 and 120."""


def videos(folder: Path) -> Path:
    for place, (episode, ending) in enumerate(EPISODES.items()):
        write_numbered(folder / f"{episode}{ending}", 40, first=60 * place)
    return folder


def lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def questions(folder: Path) -> Path:
    """In the form of OpenEQA: two questions about each episode, answered by yes or no."""
    return lines(
        folder / "open-eqa.jsonl",
        [
            {
                "id": f"{place}-{number}",
                "question": f"Is thing {number} there?",
                "answer": ("yes", "no")[number],
                "extra_answers": [],
                "category": "object recognition",
                "scene": episode,
            }
            for place, episode in enumerate(EPISODES)
            for number in range(2)
        ],
    )


def seen(pool: Pool, question: Question) -> list[int]:
    return [number_of(image) for image in pool.images(question)]


class Watching:
    """An answerer that is shown the pictures of a pool, and keeps their numbers and the prompt."""

    name, identity, cost_per_1000 = "watching", {"answerer": "watching"}, 0.0

    def __init__(self, pool: Pool) -> None:
        self.pool, self.shown = pool, dict[str, tuple[list[int], str]]()

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        self.shown[question.id] = seen(self.pool, question), prompt
        return Reply("yes")


def test_open_eqa_with_videos_goes_from_import_to_the_model(tmp_path: Path) -> None:
    out, arguments = tmp_path / "pool", [str(questions(tmp_path)), "--pictures", str(videos(tmp_path / "films"))]
    done = CliRunner().invoke(app, ["curate", "import", "openeqa", *arguments, "--frames", "4", "--out", str(out)])
    assert done.exit_code == 0, done.output
    pool = read_pool(out)
    by_episode = {
        episode: [60 * place + number for number in (0, 13, 26, 39)] for place, episode in enumerate(EPISODES)
    }
    assert all(seen(pool, one) == by_episode[one.scene] and one.video for one in pool.questions)
    assert [medium.time_s for medium in pool.questions[0].media] == [0.0, 1.3, 2.6, 3.9]
    assert pool.made["frames"]["files"] == 3
    assert pool.made["frames"]["rule"].startswith("4 at equal distances")
    assert len(list((out / "videos").glob("*.json"))) == 3, "a video of two questions is decoded once"
    watching = Watching(pool)
    found = evaluate(pool, [watching], tmp_path / "scores", sandbox=Unguarded())
    assert sorted(row.score for row in found.rows) == [0, 0, 0, 1, 1, 1]
    for question in pool.questions:
        numbers, prompt = watching.shown[question.id]
        assert numbers == by_episode[question.scene], "in their order"
        assert "The pictures are frames of one video, in their order." in prompt
    assert _shown(pool.questions[0], out).picture is not None
    row = next(iter(_rows(out, list(pool.questions))))[1]
    assert row["video"]
    assert row["times_s"] == [0.0, 1.3, 2.6, 3.9]


def test_the_same_import_again_decodes_nothing_and_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    films, asked = videos(tmp_path / "films"), questions(tmp_path)
    import_pool("openeqa", asked, tmp_path / "pool", pictures=films, frames=3)
    before = {file: file.read_bytes() for file in (tmp_path / "pool").rglob("*") if file.is_file()}
    import_pool("openeqa", asked, tmp_path / "other", pictures=films, frames=3)
    assert all(
        (tmp_path / "other" / file.relative_to(tmp_path / "pool")).read_bytes() == before[file] for file in before
    )

    def decoded(*_: Any) -> None:
        raise AssertionError("it was decoded again")

    with pytest.raises(InputError, match="holds another pool"):
        import_pool("openeqa", asked, tmp_path / "other", pictures=films, frames=4)
    monkeypatch.setattr("merton_studies.curation.importing.frames.frames_evenly", decoded)
    import_pool("openeqa", asked, tmp_path / "pool", pictures=films, frames=3)
    assert {file: file.read_bytes() for file in before} == before
    next((tmp_path / "pool" / "media").iterdir()).unlink()
    with pytest.raises(AssertionError, match="decoded again"):
        import_pool("openeqa", asked, tmp_path / "pool", pictures=films, frames=3)


def test_stamps_choose_frames_in_lines_and_tables(tmp_path: Path) -> None:
    write_numbered(tmp_path / "v.mp4", 40)
    asked = {"text": "Which?", "answer_kind": "free_text", "answer": "cup"}
    rows = [{"id": "a", **asked, "media": ["v.mp4"], "stamps": [2.0, 0.55]}, {"id": "b", **asked, "media": ["v.mp4"]}]
    pool = import_pool("jsonl", lines(tmp_path / "q.jsonl", rows), tmp_path / "1", LABS, frames=2).pool
    assert [seen(pool, one) for one in pool.questions] == [[20, 5], [0, 39]]
    (tmp_path / "q.csv").write_text(
        'id,question,answer,video,seconds\n1,Which?,cup,v.mp4,"[1.5, 3]"\n2,Which?,cup,v.mp4,\n'
    )
    columns = {"stamps": ("seconds",)}
    pool = import_pool("csv", tmp_path / "q.csv", tmp_path / "2", LABS, columns=columns, frames=1).pool
    assert [seen(pool, one) for one in pool.questions] == [[15, 30], [19]]
    assert all(one.video for one in pool.questions)


def test_a_folder_of_frames_is_a_video_and_a_picture_beside_one_makes_none(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    for number in range(9):
        PillowImage.fromarray(numbered(number)).save(tmp_path / "frames" / f"{number:03d}.png")
    asked = {"text": "Which?", "answer_kind": "free_text", "answer": "cup"}
    rows = [{"id": "a", **asked, "media": ["frames"]}, {"id": "b", **asked, "media": ["frames/003.png", "frames"]}]
    pool = import_pool("jsonl", lines(tmp_path / "q.jsonl", rows), tmp_path / "pool", LABS, frames=3).pool
    assert [(seen(pool, one), one.video) for one in pool.questions] == [([0, 4, 8], True), ([3, 0, 4, 8], False)]
    assert pool.made["frames"]["folders"] == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"media": ["cut.mp4"]}, "line 1: .*cut.mp4' is no intact video"),
        ({"media": ["absent.mp4"]}, "line 1: the video .*absent.mp4' cannot be read: No such file"),
        ({"media": ["v.mp4"], "stamps": [1.0, 4.5]}, "line 1: .*has no frame at 4.5 s: it lasts 4.000 s"),
        ({"media": ["v.mp4"], "stamps": ["soon"]}, "line 1: stamps are seconds of a video"),
        ({"media": ["p.png"], "stamps": [1.0]}, "line 1: has stamps, and 'p.png' is no video file"),
        ({"media": ["nothing"]}, "line 1: the folder of frames .* has no pictures"),
    ],
    ids=["cut", "absent", "late stamp", "no stamp", "stamp of a picture", "empty folder"],
)
def test_a_faulty_video_is_one_sentence_with_its_line(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    whole = write_numbered(tmp_path / "v.mp4", 40).read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "nothing").mkdir()
    PillowImage.fromarray(np.zeros((8, 8, 3), np.uint8)).save(tmp_path / "p.png")
    made = {"id": "a", "text": "Which?", "answer_kind": "free_text", "answer": "cup", **row}
    with pytest.raises(InputError) as caught:
        import_pool("jsonl", lines(tmp_path / "q.jsonl", [made]), tmp_path / "pool", LABS)
    assert re.search(reason, str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


def test_a_video_inside_a_table_is_told_to_be_a_file(tmp_path: Path) -> None:
    content = write_numbered(tmp_path / "v.mp4", 3).read_bytes()
    from merton_studies.curation.importing.media import MediaFolder

    with pytest.raises(InputError, match="row 1: holds a video itself; write it to a file"):
        MediaFolder(tmp_path / "pool", tmp_path).add(content, "row 1")


def test_the_published_questions_are_read_with_videos(tmp_path: Path) -> None:
    published = Path(__file__).parents[4] / "shared/data/embodied_questions/open_eqa.jsonl"
    if not published.is_file():
        pytest.skip("the published questions of OpenEQA are not beside this checkout")
    rows = [json.loads(line) for line in published.read_text().splitlines()[:6]]
    for row in rows:
        if not (tmp_path / f"{row['scene']}.mp4").exists():
            write_numbered(tmp_path / f"{row['scene']}.mp4", 10)
    pool = import_pool(
        "openeqa", lines(tmp_path / "q.jsonl", rows), tmp_path / "pool", pictures=tmp_path, frames=2
    ).pool
    assert [seen(pool, one) for one in pool.questions] == [[0, 9]] * 6
