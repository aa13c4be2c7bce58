"""The report: one safe, complete file, for complete and for broken runs."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from fake_run import make_fake_run

from merton.errors import InputError
from merton.pages import svg
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.results.trial_files import film_path
from merton.study import gallery, paths, report, trial_table
from merton.study.report import film_records, write_report

SMALL: dict[str, Any] = {"distortions": ("gaussian_blur", "max_darken"), "tasks": ("pick",)}
EVIL = "<img src=x onerror=alert(1)>\"'&{{7*7}}"
VOID = {"meta", "img", "br", "input", "link", "hr"}


class Page(HTMLParser):
    """Checks that tags are balanced and collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.tags: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self.text = ""
        self.handlers: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for key, value in attrs:
            if key in ("src", "href", "xlink:href", "action", "srcset"):
                self.sources.append(value or "")
            if key.startswith("on"):
                self.handlers.append(key)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


def page_of(directory: Path) -> tuple[str, Page]:
    text = write_report(directory).read_text(encoding="utf-8")
    return text, Page(text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "full"
    make_fake_run(directory)
    return directory


def test_the_page_is_one_file_without_requests(run: Path) -> None:
    text, page = page_of(run)
    addresses = [source for source in page.sources if not source.startswith("data:image/jpeg;base64,")]
    assert all(f'id="{source[1:]}"' in text for source in addresses if source.startswith("#"))
    others = {source for source in addresses if not source.startswith("#")}
    assert all((run / unquote(source)).exists() for source in others)
    assert {"results.sqlite", "trials.csv", "trials/", "experiment.yaml", "run.json"} <= others
    assert "http://" not in text
    assert "https://" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert "link" not in page.tags
    assert "default-src 'none'" in text
    assert sorted(path.name for path in run.iterdir() if path.name.startswith((".", "report"))) == ["report.html"]


def test_every_section_is_there_in_order(run: Path) -> None:
    text, page = page_of(run)
    anchors = [anchor for anchor in report.TITLES if anchor != "thresholds"]
    places = [text.index(f'<h2 id="{anchor}"') for anchor in anchors]
    assert places == sorted(places)
    words = re.findall(r'<li><a href="#(\w+)">([^<]+)</a></li>', text)
    assert words == re.findall(r'<h2 id="(\w+)">([^<]+)</h2>', text), "the menu has the words of the headings"
    assert [anchor for anchor, _ in words] == anchors
    assert re.search(
        r"<h1>servo loses most under distortion: its success falls from \d+ to \d+\u00a0%, which 3 sc", text
    )
    assert "3 agents, 324 trials in 3 scenes, 6\u00a0min 53\u00a0s." in page.text, "three scenes tell no hardest"
    assert "14 March 2026" in page.text
    assert "0123456789abcdef" in page.text
    assert "packages · numpy" in page.text
    assert "scenes: 1" in page.text  # experiment.yaml as given
    assert page.tags["article"] == 7 + 3, "cards of distortions, and of the execution study"
    assert page.tags["img"] == 2 * (7 + 2), "one of the three kept no pictures"
    assert "nan" not in page.text.lower().split()


def test_every_trouble_is_listed(run: Path) -> None:
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = store.records("quickstart")
    text, _ = page_of(run)
    data = trial_data(text)
    by_id = {data["texts"][row[0]]: row for row in data["rows"]}
    assert by_id.keys() == {record.id for record in records}
    for record in records:
        row = by_id[record.id]
        assert (row[3], row[5], row[6]) == (record.case.seed, record.case.level, record.outcome.value)
        assert record.error_message in data["texts"][row[14]]
    kept = by_id["servo.pick.0.max_darken.5"]
    files = [data["texts"][place] for frame in kept[20] for place in frame[2:]]
    assert files
    assert all((run / "trials/servo.pick.0.max_darken.5" / file).is_file() for file in files)
    unsuccessful = sum(record.outcome is not Outcome.SUCCESS for record in records)
    assert f"324 trials, {unsuccessful} of which did not succeed, the gravest first." in text


def test_of_too_many_troubles_the_gravest_are_listed_and_all_are_counted(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_table, "TRIALS_SHOWN", 2)
    text, page = page_of(run)
    outcomes = [row[6] for row in trial_data(text)["rows"]]
    assert len(outcomes) == 2
    assert not {"failure", "success"} & set(outcomes), "servo has graver ones"
    assert "Here are 2 of them; all are in trials.csv." in page.text


def test_a_text_of_a_trial_cannot_end_the_data(tmp_path: Path) -> None:
    make_fake_run(tmp_path / "run", **SMALL)
    file = next((tmp_path / "run/trials").glob("servo.*/trial.json"))
    detail = json.loads(file.read_text())
    evil = "</script><img src=x onerror=alert(1)>"
    file.write_text(json.dumps({**detail, "instruction": evil, "decision": {"distorted": {"deltas": [["a", 1e400]]}}}))
    text, page = page_of(tmp_path / "run")
    assert page.handlers == []
    assert evil in trial_data(text)["texts"]


def test_a_card_plays_the_film_that_is_there(tmp_path: Path) -> None:
    make_fake_run(tmp_path / "run", **SMALL)
    before, _ = page_of(tmp_path / "run")
    assert "<code>merton video run</code>" in before
    assert "Play both runs" not in before
    trial = film_records(tmp_path / "run")[0].id
    place = film_path(tmp_path / "run", trial)
    place.parent.mkdir()
    place.write_bytes(b"RIFF0000WEBPVP8 ")
    after, _ = page_of(tmp_path / "run")
    assert after.count("Play both runs") == 1
    assert "<code>merton video run</code>" not in after
    data = trial_data(after)
    assert [data["texts"][row[0]] for row in data["rows"] if row[21]] == [trial]
    place.write_bytes(b"no film")
    assert "Play both runs" not in page_of(tmp_path / "run")[0]


def trial_data(text: str) -> dict[str, Any]:
    """The data of the table of trials in a report."""
    return json.loads(re.search(r'id="trial-data">(.*?)</script>', text, re.S)[1])  # type: ignore[index]


def test_the_same_run_gives_the_same_page(run: Path) -> None:
    assert page_of(run)[0] == page_of(run)[0]


def test_the_gallery_prefers_failures_of_agents_that_depend_on_images(run: Path) -> None:
    text, _ = page_of(run)
    cards = re.findall(r'<article class="card".*?</article>', text, re.S)
    assert all("servo ·" in card for card in cards)  # neither hold nor oracle depends on the image
    with ResultStore(run / "results.sqlite", read_only=True) as store:
        severe = [item for item in store.records("quickstart") if item.agent == "servo" and item.case.level == 5]
    failed = {item.case.distortion for item in severe if item.outcome in (Outcome.FAILURE, Outcome.EMERGENCY_STOP)}
    assert failed
    assert sum("</span> success</span>" not in card for card in cards) == len(failed)
    assert all(card.count("<svg") == 2 for card in cards)


def test_names_and_texts_are_escaped_in_the_report(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    records = make_fake_run(directory, agents=("servo",), levels=(5,), **SMALL)
    with ResultStore(directory / "results.sqlite") as store:
        case = TestCase("pick", 0, EVIL, 5)
        store.record(
            TrialRecord("quickstart", EVIL, case, Outcome.FAILURE, 0.1, 0.2, 30.0, error_message=EVIL + "\u202e")
        )
    for record in records:
        path = directory / "trials" / record.id / "trial.json"
        detail = {
            **json.loads(path.read_text()),
            "instruction": EVIL,
            "question": EVIL,
            "answers": {"reference": EVIL, "distorted": EVIL + " too"},
        }
        path.write_text(json.dumps(detail))
    facts = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps({**facts, "id": EVIL, "created": EVIL, EVIL: EVIL}))
    (directory / "experiment.yaml").write_text(EVIL)
    text, page = page_of(directory)
    assert "<img src=x" not in text
    assert page.handlers == []
    assert "\u202e" not in text
    assert page.tags["script"] == 2, "the table's data, and the page's own"
    assert "x" not in page.sources
    assert EVIL in page.text
    assert "{{7*7}}" in page.text


def test_missing_files_of_a_trial_are_shown_as_missing(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    records = make_fake_run(directory, agents=("servo",), **SMALL)
    for record in records:
        folder = directory / "trials" / record.id
        for picture in folder.glob("*.jpg"):
            picture.unlink()
        (folder / "trial.json").write_text(
            '{"path": [[NaN, 0, 1], "x"], "frames": [7, {"reference": 3}], "cognition": "?"}'
        )
    _, page = page_of(directory)
    assert page.text.count("no picture") == 4
    assert "img" not in page.tags
    for record in records:
        (directory / "trials" / record.id / "trial.json").write_text("{")
    _, page = page_of(directory)
    assert "No trial of this run kept its details" in page.text


def test_frames_outside_the_trial_are_not_read(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    records = make_fake_run(directory, agents=("servo",), **SMALL)
    secret = b"\xff\xd8\xff" + b"secret" * 20
    (tmp_path / "secret.jpg").write_bytes(secret)
    (directory / "secret.jpg").write_bytes(secret)
    for number, record in enumerate(records):
        folder = directory / "trials" / record.id
        names = ["../../secret.jpg", str(tmp_path / "secret.jpg"), "link.jpg", "trial.json"]
        (folder / "link.jpg").symlink_to(tmp_path / "secret.jpg")
        detail = json.loads((folder / "trial.json").read_text())
        pair = {"reference": names[number % 4], "distorted": names[(number + 1) % 4]}
        (folder / "trial.json").write_text(json.dumps({**detail, "frames": [{"step": 0, "camera": "top", **pair}]}))
    _, page = page_of(directory)
    assert "img" not in page.tags
    assert page.tags["article"] == 2


def test_pictures_stop_at_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "run"
    make_fake_run(directory, agents=("servo",), **SMALL)
    monkeypatch.setattr(gallery, "PICTURE_BUDGET", 50_000)
    _, page = page_of(directory)
    assert page.tags["article"] == 2
    assert page.tags.get("img", 0) < 4
    assert sum(map(len, page.sources)) < 50_000 + 200
    assert page.text.count("no picture") > 0


def test_an_unfinished_run_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    ResultStore(tmp_path / "results.sqlite").close()
    _, page = page_of(tmp_path)
    assert "0 agents, 0 trials" in page.text
    assert "No trial has been recorded yet" in page.text
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record(TrialRecord("e", "servo", TestCase("pick", 0, "jpeg", 3), Outcome.INFRASTRUCTURE, error_code=401))
    text, page = page_of(tmp_path)
    assert "<h1>No distorted trial has an undistorted one of its scene beside it, so no drop is known.</h1>" in text
    assert "1 agent, 1 trial in 1 scene." in page.text
    assert '<td>–</td><td class="left">–</td>' in text
    assert "infrastructure fault" in page.text


def test_a_run_whose_trials_all_fail_has_a_report(tmp_path: Path) -> None:
    """Success does not scatter then, while execution does."""
    (tmp_path / "run.json").write_text("{}")
    with ResultStore(tmp_path / "results.sqlite") as store:
        for scene, score in ((0, 20.0), (1, 90.0)):
            case = TestCase("pick", scene, "jpeg", 3)
            store.record(TrialRecord("e", "servo", case, Outcome.FAILURE, execution=score, distance_m=1.0))
    _, page = page_of(tmp_path)
    assert "Where the scatter of distorted trials comes from" in page.text
    assert "Effective sample size" not in page.text
    assert "Left out, all distorted trials alike: servo (success)." in page.text


def test_missing_cells_are_hatched(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    make_fake_run(directory, agents=("servo",), levels=(1, 5), **SMALL)
    text, _ = page_of(directory)
    assert text.count('class="missing" title="n = 0"') == 4 * 2 * 3  # success and stages x distortions x levels 2, 3, 4


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run at .*nowhere"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"run\.json is missing or is not a JSON object"):
        write_report(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(InputError, match=r"run\.json"):
        write_report(tmp_path)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match="no result store"):
        write_report(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_second_score_stands_beside_those_of_answers_and_decisions(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    make_fake_run(directory, agents=("servo", "hold"), seeds=2, **SMALL)
    text, _ = page_of(directory)
    with (directory / "model_scores.csv").open(encoding="utf-8") as file:
        rows = {(row["model"], row["score"]): row for row in csv.DictReader(file)}
    assert {score for _, score in rows} == {"cognition", "slots", "decision", "own_spread"}
    for row in rows.values():
        count = int(row["trials"])
        assert (row["mean"] == "") == (count == 0)
        assert not count or 0 <= float(row["low"]) <= float(row["mean"]) <= float(row["high"]) <= 1
    assert rows["hold", "own_spread"]["reason"] == "it decides the same in all scenes of the task"
    assert text.count("it decides the same in all scenes of the task") == 1
    with (directory / "trials.csv").open(encoding="utf-8") as file:
        trials = list(csv.DictReader(file))
    assert [*trials[0]][-2:] == ["slots", "own_spread"]
    told = [float(trial["slots"]) for trial in trials if trial["slots"] and int(trial["level"]) > 0]
    assert len(told) == sum(int(row["trials"]) for row in rows.values() if row["score"] == "slots") > 0


def test_every_score_has_its_floor_and_repeated_output_is_named(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    make_fake_run(directory, agents=("servo", "hold"), seeds=2, **SMALL)
    text, page = page_of(directory)
    section = re.search(r'<section aria-labelledby="floors">.*?</section>', text, re.S)[0]  # type: ignore[index]
    rows = {
        tuple(cells[:2]): cells[2:]
        for row in re.findall(r"<tr>(.*?)</tr>", section, re.S)[1:]
        for cells in [[re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)]]
    }
    assert set(rows) == {(a, s) for a in ("servo", "hold") for s in ("cognition", "decision", "execution")}
    assert rows["hold", "decision"][1:] == [
        "1.000",
        "–",
        "position 1.00 · rotation 1.00 · state 1.00",
        "does not look repeats itself",
    ]
    raw, floor, above = (float(value.replace("−", "-")) for value in rows["servo", "decision"][:3])
    assert above == pytest.approx((raw - floor) / (1 - floor), abs=0.1)  # all three are rounded
    assert rows["servo", "decision"][4] == ""
    assert "hold (decision)" in page.text
    assert "scenes to 2 or more" not in page.text
    make_fake_run(tmp_path / "one", agents=("servo", "hold"), **{**SMALL, "tasks": ("pick", "push")})
    _, page = page_of(tmp_path / "one")
    assert "hold (decision)" in page.text  # two tasks are enough to see that
    assert "set scenes to 2 or more" in page.text


def test_annotated_scores_have_a_page(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = [
        {
            "model": model,
            "scene": f"s{i}",
            "image": f"{i}",
            "task": "pick",
            "dimension": "bleu",
            "level": level,
            "score": score,
        }
        for model, sign in (("one", 1), (EVIL, -1))
        for i in range(4)
        for level in range(6)
        for score in [0.5 + sign * (0.02 * i - 0.01 * level)]
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "scores.parquet")
    target = report.write_models_page(tmp_path / "scores.parquet", tmp_path / "page.html")
    text = target.read_text(encoding="utf-8")
    page = Page(text)
    assert "Cognition: 2 models" in page.text
    assert "BLEU (−1.00)" in page.text
    assert "Intervals of all pairs" in page.text
    assert "<img src=x" not in text
    assert "//" not in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "scores.parquet"]


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_colour_scale_is_even_and_readable() -> None:
    shares = np.linspace(0, 1, 41)
    colors = [svg.sequential_color(share) for share in shares]
    luminance = np.array([_luminance(background) for background, _ in colors])
    assert (np.diff(luminance) > 0).all()
    lightness = 1.16 * np.cbrt(luminance) - 0.16  # CIE L*, a second opinion on the OKLab steps
    assert np.abs(lightness - np.interp(shares, [0, 1], lightness[[0, -1]])).max() < 0.05
    for background, ink in colors:
        bright, dark = sorted((_luminance(background), _luminance(ink)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5  # WCAG AA
    assert svg.sequential_color(-1) == colors[0]
    assert svg.sequential_color(9) == colors[-1]


def test_trajectories_keep_scale_and_orientation() -> None:
    path = np.array([[0.3, 0.0, 0.3], [0.5, 0.1, 0.1]])
    window = paths.window_of([path])
    top, side = (paths.trajectory(path, path, view, window) for view in ("top", "side"))

    def corners(svg: str) -> np.ndarray:
        return np.array([pair.split(",") for pair in re.search(r'points="([^"]+)"', svg)[1].split()], float)  # type: ignore[index]

    step_top, step_side = np.diff(corners(top), axis=0)[0], np.diff(corners(side), axis=0)[0]
    assert step_top[0] < 0
    assert step_top[1] < 0
    assert step_side[0] > 0
    assert step_side[1] > 0
    assert step_top[1] / step_top[0] == pytest.approx(2.0, abs=0.05)  # 20 cm forward, 10 cm left, one scale
    assert paths.trajectory(path[:0], path[:0], "top", paths.window_of([])).count("polyline") == 0


def test_elements_escape_their_content() -> None:
    assert svg.tag("text", "<b>", class_='a"b', x=1.5) == '<text class="a&#34;b" x="1.5">&lt;b&gt;</text>'
