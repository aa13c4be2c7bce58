"""The operator's page: only by the operator's token, up to date, and nothing of it for raters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_study import client, make_project

from merton.config import dumps
from merton_studies.people.ledger import Answer, Slot
from merton_studies.people.serve import operator as operator_module
from merton_studies.people.statistics import summary
from merton_studies.people.study import Study, open_study

WHEN = "2026-05-03T10:00:00+00:00"


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    """Two raters, and the answers of one of them."""
    study = open_study(make_project(tmp_path, raters=("Ada", "Ben"), title="<b>Title</b>"))
    for name in ("Ada", "Ben"):
        rater = study.ledger.register(name)
        study.ledger.hand_out(
            [Slot(rater.id, n, item.id, "design", WHEN) for n, item in enumerate(study.items, 1)]
        )  # fmt: skip
    answer(study, "R01")
    yield study
    study.close()


def answer(study: Study, rater: str) -> None:
    for n, item in enumerate(study.items, 1):
        study.ledger.save(Answer(f"{rater}{n}", rater, n, item.id, "design", {"score": n}, 1.0, WHEN))


def test_statistics_are_for_the_operator_alone(study: Study, tmp_path: Path) -> None:
    tokens = {name: name[0] * 20 for name in ("operator", "Ada")}
    file = tmp_path / "tokens.yaml"
    file.write_text(dumps({"tokens": {who: hashlib.sha256(t.encode()).hexdigest() for who, t in tokens.items()}}))
    for path in ("/api/statistics", "/api/statistics.html"):
        for token in ("", "x" * 20, tokens["Ada"]):
            refused = client(study, file, token).get(path)
            assert refused.status_code == 401
            assert refused.json() == {"detail": "open this page by the operator's link"}
        allowed = client(study, file, tokens["operator"]).get(path)
        assert allowed.status_code == 200
        assert allowed.headers["cache-control"] == "no-store"
    shell = client(study, file).get("/operator")
    assert shell.status_code == 200
    assert "Title" not in shell.text


def test_statistics_follow_the_answers(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "FRESH_S", 0.0)
    asking = client(study)
    said = study.ledger.answers()
    expected = summary(study.project, study.items, study.protocol, said, study.sha256)
    assert asking.get("/api/statistics").text == expected.as_json()
    answer(study, "R02")
    told = json.loads(asking.get("/api/statistics").text)
    assert (told["answers"], told["complete"], len(told["raters"])) == (8, 4, 2)
    page = asking.get("/api/statistics.html")
    assert "&lt;b&gt;Title&lt;/b&gt;" in page.text
    assert "Ada" not in page.text
    assert "Ben" not in page.text
    style = asking.get("/page/statistics.css")
    assert (style.status_code, style.headers["content-type"].split(";")[0]) == (200, "text/css")


def test_statistics_are_not_computed_for_every_request(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_module, "FRESH_S", 3600.0)
    asking = client(study)
    first = asking.get("/api/statistics").text
    answer(study, "R02")
    assert asking.get("/api/statistics").text == first
