"""Mean opinions of pictures, raters that BT.500 rejects, and people beside models on the same images."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from miniature_dataset import write_miniature
from planted_opinions import planted
from scipy.stats import rankdata, spearmanr, t
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton_studies.cli.iqa_cross import _source
from merton_studies.opinions.human import beside, read_human
from merton_studies.opinions.opinion import write_opinions
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Kind
from merton_studies.people.opinions import opinions
from merton_studies.people.protocols.quality import Quality
from merton_studies.people.ratings import ratings_of


def picture(reference: str, distortion: str = "reference", level: int = 0) -> Item:
    name = f"{reference}.{distortion}.{level}"
    of = "" if level == 0 else f"{reference}.reference.0"
    facts = {"image": name, "reference": of, "reference_id": reference, "distortion": distortion, "level": str(level)}
    return Item(name, reference, {}, {}, facts)


def answer(rater: int, item: Item, score: int, kind: Kind = "design", number: int = 1) -> Answer:
    name = f"R{rater:02d}"
    return Answer(
        f"{name}-{item.id}-{kind}", name, number, item.id, kind, {"score": score}, 2.0, "2026-01-01T00:00:00Z"
    )


def exported(items: Sequence[Item], answers: Sequence[Answer], out: Path) -> dict[str, list[dict[str, str]]]:
    out.mkdir(exist_ok=True)
    files = Quality().export(items, answers, out, {one.rater: one.rater for one in answers})
    return {file.name: list(csv.DictReader(file.read_text().splitlines())) for file in files}


def test_means_by_hand(tmp_path: Path) -> None:
    """Of raters who did not judge the reference there is no loss; of repeats the first answer counts."""
    reference, copy, alone = picture("a"), picture("a", "blur", 3), picture("b")
    answers = [answer(1, reference, 5), answer(2, reference, 4), answer(3, alone, 2)]
    answers += [answer(1, copy, 3), answer(2, copy, 4), answer(3, copy, 2)]
    answers += [answer(1, copy, 1, "repeat", 7), answer(2, copy, 1, "gold", 8)]
    items = [reference, copy, alone, picture("b", "noise", 1)]
    found = {one.item.id: one for one in opinions(items, ratings_of(items, Quality(), answers))}
    mos, dmos = found[copy.id].mos, found[copy.id].dmos
    assert (mos.n, mos.mean, mos.deviation) == (3, 3.0, 1.0)
    assert mos.interval == (1.0, 5.0)  # 3 +- 4.30 / sqrt(3), within the scale
    assert (dmos.n, dmos.mean) == (2, 4.0)  # 5 + 3 - 5 and 5 + 4 - 4
    half = t.ppf(0.975, 1) * np.std([3, 5], ddof=1) / np.sqrt(2)
    assert dmos.interval == pytest.approx((4.0 - half, 4.0 + half))  # of a loss: without ends
    agreed = opinions(items[:1], ratings_of(items, Quality(), [answer(1, reference, 5), answer(2, reference, 5)]))
    assert (agreed[0].mos.mean, agreed[0].mos.interval) == (5.0, None)
    assert (found[reference.id].dmos.n, found[alone.id].mos.n, found[alone.id].mos.interval) == (0, 1, None)
    table = exported(items, answers, tmp_path / "out")["human.csv"]
    assert [row["image"] for row in table] == [reference.id, copy.id, alone.id]  # without an opinion, no row
    assert (table[1]["mos"], table[1]["dmos"], table[1]["ratings"]) == ("3.0", "4.0", "3")
    assert (table[2]["mos_low"], table[2]["dmos"]) == ("", "")


def test_a_rater_whom_bt500_rejects_is_left_out_of_the_means(tmp_path: Path) -> None:
    """Eleven raters within one grade of each other; one is two grades off, now above and now below."""
    items = [picture(f"s{number:02d}", "blur", 2) for number in range(30)]
    rng = np.random.default_rng(4)
    careful = rng.choice([3, 3, 3, 3, 2, 4], size=(len(items), 11))
    answers = [
        answer(rater + 1, item, int(careful[place, rater])) for place, item in enumerate(items) for rater in range(11)
    ]
    answers += [answer(12, item, 1 + 4 * (place % 2)) for place, item in enumerate(items)]
    tables = exported(items, answers, tmp_path / "out")
    verdicts = {row["rater"]: row["left_out"] for row in tables["raters.csv"]}
    assert verdicts["R12"] == "yes"
    assert "no" in verdicts.values()
    kept = [rater for rater in range(11) if verdicts[f"R{rater + 1:02d}"] == "no"]
    assert [float(row["mos"]) for row in tables["human.csv"]] == pytest.approx(
        careful[:, kept].mean(axis=1).tolist(), abs=1e-6
    )
    assert {row["ratings"] for row in tables["human.csv"]} == {str(len(kept))}
    few = exported(items, [one for one in answers if one.rater in ("R01", "R12")], tmp_path / "few")
    assert {row["left_out"] for row in few["raters.csv"]} == {"too few ratings to tell"}


FALLS = {"gaussian_blur": 0.65, "white_noise": 0.35, "lens_blur": 0.5}
"""Of the models' scores, a level; people mind noise most."""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """opinions.parquet of models, and human.csv."""
    folder = tmp_path_factory.mktemp("people")
    found = planted(list(FALLS), lambda kind, level: 5.0 - FALLS[kind] * level, scenes=24)
    write_opinions(found, folder / "opinions.parquet")
    minds = {"gaussian_blur": 0.35, "white_noise": 0.65, "lens_blur": 0.5}
    rng = np.random.default_rng(1)
    lines = ["reference_id,distortion,level,mos,scene"]
    for reference, kind, level, scene in zip(
        found.reference_id, found.distortion, found.level, found.scene, strict=True
    ):
        mos = 5.0 - minds[str(kind)] * int(level) + rng.normal(0.0, 0.1)
        lines.append(f"{reference},{kind},{level},{mos:.6f},{scene}")
    lines.append("s00_side,reference,0,4.9,s00")
    (folder / "human.csv").write_text("\n".join(lines) + "\n")
    return folder / "opinions.parquet", folder / "human.csv"


def test_people_beside_models(study: tuple[Path, Path]) -> None:
    found = planted(list(FALLS), lambda kind, level: 5.0 - FALLS[kind] * level, scenes=24)
    people = read_human(study[1])
    decision = next(one for one in beside(found, people) if one.stage == "decision")
    keys = zip(found.reference_id.tolist(), found.distortion.tolist(), found.level.tolist(), strict=True)
    mos = np.array([people[key] for key in keys])
    assert (decision.images, decision.scenes) == (len(mos), 24)
    assert decision.srcc == pytest.approx(spearmanr(mos, found.decision).statistic)
    assert decision.interval is not None
    assert decision.interval[0] < decision.srcc < decision.interval[1]
    ranked = [rankdata(side) for side in (mos, found.decision)]
    for rank in ranked:
        for level in range(1, 6):
            rank[found.level == level] -= rank[found.level == level].mean()
    assert decision.within_levels == pytest.approx(np.corrcoef(*ranked)[0, 1])
    assert decision.within_levels < 0.0 < decision.srcc  # people and models mind other types
    places = {row.distortion: (row.people_place, row.models_place) for row in decision.by_type}
    assert places == {"gaussian_blur": (1, 3), "lens_blur": (2, 2), "white_noise": (3, 1)}
    assert decision.by_type[-1].distortion == "lens_blur"


def test_the_command_prints_them(study: tuple[Path, Path]) -> None:
    result = CliRunner().invoke(app, ["iqa", "human", *map(str, study)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "decision: 216 images of 24 scenes" in result.stdout
    assert "not enough yet" not in result.stdout


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a,blur,1,good", "mos is 'good'; it must be a number"),
        (",blur,1,3", "has no reference_id or level"),
        ("a,blur,,3", "has no reference_id or level"),
        ("a,blur,1,3\na,blur,1,4", "blur at level 1 of 'a' stands twice"),
        ("a,reference,0,5", "has no opinion of a distorted image"),
    ],
)
def test_wrong_opinions_are_refused(tmp_path: Path, line: str, sentence: str) -> None:
    file = tmp_path / "human.csv"
    file.write_text(f"reference_id,distortion,level,mos\n{line}\n")
    with pytest.raises(InputError, match=sentence):
        read_human(file)


def test_metrics_are_tested_on_the_opinions_of_ones_own_study(tmp_path: Path) -> None:
    data = write_miniature(tmp_path / "data", scenes=1, levels=(1, 2))
    file = tmp_path / "human.csv"
    file.write_text(
        "reference_id,distortion,level,mos\ntest_00_top,white_noise,2,2.5\ntest_00_side,gaussian_blur,1,4\n"
    )
    found = _source(f"human={file}", data, None)
    assert (found.name, found.scores.tolist()) == ("human", [2.5, 4.0])
    assert found.pairs[0].image.is_file()
    assert found.pairs[1].reference == data / "references" / "test_00_side.png"
    with pytest.raises(InputError, match=r"^human needs --dataset, and its table: write human=human.csv$"):
        _source("human", data, None)
    with pytest.raises(InputError, match="no finished dataset"):
        _source(f"human={file}", tmp_path, None)
    file.write_text("reference_id,distortion,level,mos\nelsewhere,white_noise,2,2.5\n")
    with pytest.raises(InputError, match="the opinions are of another dataset"):
        _source(f"human={file}", data, None)
