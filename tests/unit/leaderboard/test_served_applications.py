"""Applications at a server: by the form and as JSON, with the guards of submissions. No port is opened here."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from merton.leaderboard.serve import create_app
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore

MODEL: dict[str, Any] = {
    "kind": "model",
    "manufacturer": "Lab X",
    "name": "seer",
    "version": "1.0",
    "type": "embodied",
    "licence": "mit",
    "contact": "secret-contact@example.org",
    "api_url": "https://models.example.org/v1",
    "api_model": "seer",
}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    place = tmp_path / "results.sqlite"
    with ResultStore(place) as store:
        case = TestCase("pick", 0, "gaussian_blur", 1)
        store.record(TrialRecord("study", "servo", case, Outcome.FAILURE, execution=20.0))
    return place


def client(record: Path, **options: Any) -> TestClient:
    return TestClient(create_app(record, **options), base_url="http://localhost:8080", raise_server_exceptions=False)


def test_an_application_as_json_is_received_once_and_listed_without_its_contact(record: Path) -> None:
    asking = client(record)
    first = asking.post("/api/applications", json=MODEL)
    assert (first.status_code, first.json()["status"]) == (201, "received")
    assert asking.post("/api/applications", json=MODEL).status_code == 200
    again = asking.post("/api/applications", json={**MODEL, "version": "2"})
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    page = asking.get("/submissions.html").text
    assert "seer 1.0 (Lab X)" in page
    asking.app.state.publisher.refresh()  # type: ignore[attr-defined]
    (listed,) = asking.get("/api/applications").json()["items"]
    assert listed == {**first.json(), "repeated": False}
    assert "secret-contact" not in page + str(listed)


def test_the_form_says_what_was_received_or_why_not(record: Path) -> None:
    asking = client(record)
    assert 'name="api_url"' in asking.get("/apply").text
    refused = asking.post("/apply", data={**MODEL, "licence": ""})
    assert (refused.status_code, "licence" in refused.text) == (422, True)
    wrong = asking.post("/apply", data={**MODEL, "cost_per_1000": "cheap"})
    assert (wrong.status_code, "cost_per_1000" in wrong.text) == (422, True)
    accepted = asking.post("/apply", data={**MODEL, "cost_per_1000": "1.5", "weights": ""})
    assert (accepted.status_code, "seer 1.0 (Lab X)" in accepted.text) == (201, True)
    benchmark = {
        "kind": "benchmark",
        "manufacturer": "Lab X",
        "name": "<b>Drawers",
        "licence": "mit",
        "contact": "lab@example.org",
        "link": "https://example.org",
        "task": "Embodied Question Answering",
        "description": "-- drawers",
        "metrics": "exact match",
        "dimensions": "Object State, Object Count",
        "questions": "https://example.org/q.jsonl",
    }
    tagged = asking.post("/apply", data=benchmark)
    assert tagged.status_code == 422
    assert "<b>" not in tagged.text
    assert asking.post("/apply", data={**benchmark, "name": "Drawers"}).status_code == 201


def test_guards(record: Path, tmp_path: Path) -> None:
    asking = client(record)
    foreign = asking.post("/apply", data=MODEL, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403
    assert asking.post("/api/applications", content=b"{", headers={"content-type": "text/plain"}).status_code == 415
    assert asking.post("/api/applications", json={**MODEL, "name": "x" * 20_000}).status_code == 413
    assert client(record, closed="closed today").post("/api/applications", json=MODEL).status_code == 403
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(f"tokens:\n  Lab Y: {hashlib.sha256(b'right').hexdigest()}\n", encoding="utf-8")
    guarded = client(record, tokens=tokens)
    assert guarded.post("/api/applications", json=MODEL).status_code == 401
    assert guarded.post("/apply", data={**MODEL, "token": "wrong"}).status_code == 401
    bearer = {"Authorization": "Bearer right"}
    assert guarded.post("/api/applications", json=MODEL, headers=bearer).status_code == 403, "another manufacturer"
    mine = {**MODEL, "manufacturer": "Lab Y"}
    assert guarded.post("/api/applications", json=mine, headers=bearer).status_code == 201
