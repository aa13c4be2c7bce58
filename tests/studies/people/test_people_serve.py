"""The server of a study: who may do what, what is saved, and what a browser never learns. No port is opened here."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from secret_study import secret_study
from small_study import SECRETS, client, opened
from starlette.testclient import TestClient

from merton.config import dumps
from merton.errors import InfrastructureError, InputError
from merton.perception.dataset.tags import CATEGORIES
from merton_studies.people.protocols import tasks_chain
from merton_studies.people.serve import people as people_module
from merton_studies.people.serve import run
from merton_studies.people.serve.api import cleaned
from merton_studies.people.serve.app import PAGE
from merton_studies.people.serve.people import LONGEST_NAME
from merton_studies.people.study import Study, open_study

TOKENS = {"Ada": "a" * 20, "Ben": "b" * 20, "operator": "o" * 20, "register": "r" * 20}


def token_file(folder: Path, **tokens: str) -> Path:
    path = folder / "tokens.yaml"
    hashes = {owner: hashlib.sha256(token.encode()).hexdigest() for owner, token in tokens.items()}
    path.write_text(dumps({"tokens": hashes}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With prepared pictures; each test makes its own record beside them."""
    folder = tmp_path_factory.mktemp("study")
    opened(folder).close()
    return folder


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Iterator[Study]:
    study = opened(folder, record=str(tmp_path / "people.sqlite"))
    yield study
    study.close()


def registered(study: Study, name: str) -> TestClient:
    """A client that has registered on loopback."""
    asking = client(study)
    token = asking.post("/api/register", json={"name": name}).json()["token"]
    asking.headers["Authorization"] = f"Bearer {token}"
    return asking


def sent(number: int, score: Any = 4, id: str = "a", seconds: Any = 1.5) -> dict[str, Any]:
    """The body of an answer."""
    return {"id": (id * 32)[:32], "number": number, "answer": {"score": score}, "seconds": seconds}


def test_a_rater_from_registration_to_the_end(study: Study) -> None:
    asking = registered(study, "Ada")
    told = asking.get("/api/session").json()
    assert (told["access"], told["rater"]["id"], told["protocol"]) == ("rate", "R01", "quality")
    work = asking.get("/api/work").json()
    total = work["progress"]["total"]
    for number in range(1, total + 1):
        assert work["slots"][0]["number"] == number
        medium = asking.get(work["slots"][0]["media"][0]["url"])
        assert medium.content.startswith(b"\x89PNG")
        assert asking.post("/api/answers", json=sent(number, 1 + number % 5, f"{number}")).json() == {"saved": True}
        work = asking.get("/api/work").json()
        assert work["progress"]["done"] == number
    assert (work["state"], work["slots"]) == ("done", [])
    kept = study.ledger.answers()
    assert [(one.rater, one.number, one.answer, one.seconds) for one in kept] == [
        ("R01", number, {"score": 1 + number % 5}, 1.5) for number in range(1, total + 1)
    ]


def test_a_second_sending_changes_nothing_and_a_second_answer_is_refused(study: Study) -> None:
    asking = registered(study, "Ada")
    asking.get("/api/work")
    assert [asking.post("/api/answers", json=sent(1)).json()["saved"] for _ in range(3)] == [True, False, False]
    second = asking.post("/api/answers", json=sent(1, 2, "b"))
    assert second.status_code == 422
    assert "already" in second.json()["detail"]
    assert [one.answer for one in study.ledger.answers()] == [{"score": 4}]


def test_undo_opens_the_slot_again_once(study: Study) -> None:
    asking = registered(study, "Ada")
    asking.get("/api/work")
    asking.post("/api/answers", json=sent(1))
    assert asking.get("/api/work").json()["last"] == {"number": 1}
    undo = {"id": "u" * 32}
    assert [asking.post("/api/undo", json=undo).json()["undone"] for _ in range(2)] == [True, False]
    work = asking.get("/api/work").json()
    assert (work["slots"][0]["number"], work["last"], work["progress"]["done"]) == (1, None, 0)
    assert asking.post("/api/answers", json=sent(1, 2, "b")).json() == {"saved": True}


def test_a_name_comes_back_to_its_work_on_loopback(study: Study) -> None:
    first, second = registered(study, "Ada"), registered(study, " Ada\n")
    first.get("/api/work")
    first.post("/api/answers", json=sent(1))
    assert second.get("/api/work").json()["progress"]["done"] == 1
    keys = [asking.get("/api/session").json()["rater"]["key"] for asking in (first, second)]
    assert keys[0] == keys[1]
    assert registered(study, "Ben").get("/api/session").json()["rater"]["key"] not in keys


def test_a_token_opens_one_persons_work(study: Study, tmp_path: Path) -> None:
    tokens = token_file(tmp_path, **TOKENS)
    ada, ben = (client(study, tokens, TOKENS[name]) for name in ("Ada", "Ben"))
    for stranger in (client(study, tokens), client(study, tokens, "x" * 20)):
        assert stranger.get("/api/session").json() == {"access": "token"}
        for refused in (
            stranger.get("/api/work"),
            stranger.get("/media/1/image"),
            stranger.post("/api/answers", json=sent(1)),
            stranger.post("/api/undo", json={"id": "u" * 32}),
        ):
            assert (refused.status_code, list(refused.json())) == (401, ["detail"])
        assert stranger.post("/api/register", json={"name": "Eve"}).status_code == 403
    assert ada.get("/api/work").status_code == 401, "she has not opened the page yet"
    assert [one.get("/api/session").json()["rater"]["id"] for one in (ben, ada)] == ["R01", "R02"]
    ada.get("/api/work")
    ada.post("/api/answers", json=sent(1))
    assert ben.get("/api/work").json()["progress"]["done"] == 0
    assert ben.post("/api/undo", json={"id": "u" * 32}).json() == {"undone": False}
    assert ben.get("/media/9/image").status_code == 422, "he was not handed so many"
    assert client(study, tokens, TOKENS["operator"]).get("/api/session").json()["access"] == "operator"
    assert client(study, tokens, TOKENS["operator"]).get("/api/work").status_code == 401


def test_people_register_with_the_token_for_it_until_all_places_are_taken(study: Study, tmp_path: Path) -> None:
    tokens = token_file(tmp_path, operator=TOKENS["operator"], register=TOKENS["register"])
    door = client(study, tokens, TOKENS["register"])
    assert door.get("/api/session").json()["access"] == "register"
    made = [door.post("/api/register", json={"name": name}) for name in ("Ada", "Ada", "Ben", "Cem", "Dee", "operator")]
    assert [one.status_code for one in made] == [201, 409, 201, 201, 409, 409]
    assert "taken" in made[1].json()["detail"]
    assert "all 3 places" in made[4].json()["detail"]
    ada = client(study, tokens, made[0].json()["token"])
    assert ada.get("/api/work").json()["progress"]["done"] == 0
    study.close()
    open_study(study.folder / "project.yaml").close()


def test_a_study_of_named_people_takes_these_alone(folder: Path, tmp_path: Path) -> None:
    record = str(tmp_path / "people.sqlite")
    study = opened(folder, record=record, raters=["Ada", "Ben"])
    try:
        asking = client(study)
        eve, ada = (asking.post("/api/register", json={"name": name}) for name in ("Eve", "Ada"))
        assert (eve.status_code, ada.status_code) == (409, 201)
        assert not {"Ada", "Ben"} & set(re.findall(r"\w+", eve.text))
        with pytest.raises(InputError, match="has 'Eve'"):
            client(study, token_file(tmp_path, Eve="e" * 20))
    finally:
        study.close()


def test_a_person_who_withdrew_is_not_brought_back_by_an_open_page(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_module, "FRESH_S", -1.0)
    ada = client(study, token_file(tmp_path, **TOKENS), TOKENS["Ada"])
    ada.get("/api/session")
    ada.get("/api/work")
    ada.post("/api/answers", json=sent(1))
    assert study.ledger.withdraw("R01") == 1
    assert ada.get("/api/work").status_code == 401
    assert ada.post("/api/answers", json=sent(2, 3, "c")).status_code == 401
    assert study.ledger.raters() == ()


@pytest.mark.parametrize(("host", "names"), [("0.0.0.0", ()), ("127.0.0.1", ("lab.example",)), ("::", ())])
def test_beyond_loopback_tokens_are_needed(study: Study, host: str, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="needs --tokens FILE"):
        run(study, host, 0, names=names)


WRONG = (
    b"",
    b"[]",
    b"{",
    b'{"number": 1}',
    b"[" * 20_000,
    json.dumps(sent(0)).encode(),
    json.dumps(sent(10**30)).encode(),
    json.dumps(sent(True)).encode(),
    json.dumps(sent(1, seconds=-1)).encode(),
    json.dumps(sent(1, seconds=float("nan"))).encode(),
    json.dumps(sent(1, seconds=float("inf"))).encode(),
    json.dumps(sent(1, seconds=True)).encode(),
    json.dumps(sent(1, float("nan"))).encode(),
    json.dumps(sent(1, 6)).encode(),
    json.dumps(sent(1, "4")).encode(),
    json.dumps({**sent(1), "id": "../../x"}).encode(),
    json.dumps({**sent(1), "id": "a"}).encode(),
    json.dumps({**sent(1), "answer": [4]}).encode(),
    json.dumps({**sent(1), "answer": {"score": 4, "more": 1}}).encode(),
    json.dumps(sent(999)).encode(),
    json.dumps(sent(1, "x" * 70_000)).encode(),
    b"\xff\xfe{}",
)


def test_a_wrong_answer_is_refused_with_a_sentence(study: Study) -> None:
    asking = registered(study, "Ada")
    asking.get("/api/work")
    for body in WRONG:
        refused = asking.post("/api/answers", content=body, headers={"Content-Type": "application/json"})
        assert refused.status_code in (413, 422), body[:80]
        assert list(refused.json()) == ["detail"]
        assert len(refused.json()["detail"]) < 400
    assert study.ledger.answers() == ()


def test_a_record_that_refuses_is_no_acknowledgement(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = registered(study, "Ada")
    asking.get("/api/work")

    def failing(*_: Any) -> bool:
        raise InfrastructureError("the record secret_place/people.sqlite failed: disk full")

    with monkeypatch.context() as patched:
        patched.setattr(study.ledger, "save", failing)
        refused = asking.post("/api/answers", json=sent(1))
    assert refused.status_code == 503
    assert "secret_place" not in refused.text
    assert asking.post("/api/answers", json=sent(1)).json() == {"saved": True}


def test_no_answer_tells_where_an_item_is_from(study: Study) -> None:
    """Names, paths and distinguishing headers; a medium of one item is like that of another but for its pixels."""
    asking = registered(study, "Ada")
    work = asking.get("/api/work")
    addresses = [medium["url"] for slot in work.json()["slots"] for medium in slot["media"]]
    media = [asking.get(address) for address in addresses]
    assert len(media) > 1
    assert len({tuple(sorted(one.headers.items())) for one in media}) == 1, "sizes too: all pictures are padded alike"
    assert not {"etag", "last-modified", "content-disposition", "server", "date"} & set(media[0].headers)
    page = [
        asking.get(path) for path in ("/", "/page/app.js", "/page/app.css", "/api/session", "/nothing", "/media/9/x")
    ]
    for answer in (work, *media, *page):
        text = answer.content + str(answer.headers).encode() + answer.url.path.encode()
        assert not [secret for secret in (*SECRETS, "scene0", "reference") if secret.encode() in text.lower()]
    assert [sorted(slot) for slot in work.json()["slots"]] == [["media", "number", "view"]] * len(work.json()["slots"])


def test_every_answer_has_a_policy_without_inline_scripts(study: Study) -> None:
    asking = client(study)
    for path in ("/", "/page/app.js", "/api/session", "/nothing"):
        policy = asking.get(path).headers["content-security-policy"]
        assert "unsafe" not in policy
        assert policy.startswith("default-src 'none'")
    page = asking.get("/").text
    assert not re.search(r" style=|<script>|<style| on[a-z]+=", page)
    assert asking.get("/", headers={"Host": "evil.example"}).status_code == 421
    crossed = asking.post("/api/register", json={"name": "Eve"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert crossed.status_code == 403


def hostile_texts() -> list[str]:
    """200 texts: markup, SQL, paths, templates, huge, right to left, NUL, half surrogates, in several surroundings."""
    cores = [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "</textarea><svg onload=alert(1)>",
        "'; DROP TABLE people_answers; --",
        '" OR 1=1 --',
        "../../../../etc/passwd",
        "C:\\Windows\\System32",
        "{{ 7 * 7 }}${7*7}<%= 7 %>",
        "\u202etxt.exe\u2066",
        "\x00",
        "\x1b[31mred\x07",
        "\ud800",
        "\U0001f600\u200d\U0001f525",
        "e\u0301" * 50,
        "%s%n%x",
        "=HYPERLINK(1)",
        "\r\nSet-Cookie: a=b",
        "\ufeff\ufffe",
        "null",
        "x" * 20_000,
    ]
    around = ("{}", "Pick the {} cube", "{}{}", " {}\n", "a{}", "{}z", "<b>{}</b>", "'{}'", '"{}"', "{}\u2028")
    return [form.replace("{}", core) for core in cores for form in around]


def test_hostile_texts_are_stored_as_texts_or_refused_with_a_sentence(tmp_path: Path) -> None:
    """As names, as ids, as keys, and in the protocol in which people write most."""
    texts = hostile_texts()
    assert len(set(texts)) == 200
    study = secret_study(tmp_path, "tasks")
    tags = {name: values[0] for name, values in CATEGORIES.items()}
    try:
        asking, stored = client(study), 0
        for text in texts:
            made = asking.post("/api/register", content=json.dumps({"name": text}))
            assert made.status_code == 201 or made.json()["detail"].isprintable()
        assert all(one.name.isprintable() and len(one.name) <= LONGEST_NAME for one in study.ledger.raters())
        asking = registered(study, study.ledger.raters()[0].name)
        asking.get("/api/work")
        for number, text in enumerate(texts):
            body = {"id": f"{number:032d}", "number": 1, "seconds": 1, "answer": {"tags": tags, "task": text}}
            told = asking.post("/api/answers", content=json.dumps(body))
            if told.status_code == 200:
                (kept,) = study.ledger.answers()
                assert kept.answer["task"] == tasks_chain.cleaned(cleaned(text))
                assert asking.post("/api/undo", json={"id": f"u{number:031d}"}).json() == {"undone": True}
                stored += 1
            else:
                assert told.status_code in (413, 422)
                assert len(told.json()["detail"]) < 500
            if number < 20:
                for wrong in ({"id": text}, {"answer": {text: 1}}, {"number": text}, {"seconds": text}):
                    told = asking.post("/api/answers", content=json.dumps({**body, **wrong}))
                    assert (told.status_code, list(told.json())) in ((413, ["detail"]), (422, ["detail"]))
        assert stored >= 10, "those that begin with a verb"
        assert study.ledger.answers() == ()
    finally:
        study.close()


def test_no_script_of_the_pages_writes_markup() -> None:
    """Texts go into a page by textContent alone; one script parses a page that the server has escaped."""
    scripts = sorted(PAGE.rglob("*.js"))
    assert len(scripts) > 8
    for script in scripts:
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|parseFromString|srcdoc",
            script.read_text(encoding="utf-8"),
        )
        assert found == (["parseFromString"] if script.name == "operator.js" else []), script.name


def test_an_answer_to_a_record_that_was_removed_is_not_acknowledged(study: Study) -> None:
    asking = registered(study, "Ada")
    asking.get("/api/work")
    Path(str(study.folder / study.project.record)).unlink()
    for _ in range(2):
        refused = asking.post("/api/answers", json=sent(1))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json() == {"detail": "this could not be saved; it will be sent again"}


@pytest.mark.parametrize("deep", [31, 600, 20_000])
@pytest.mark.parametrize("path", ["/api/answers", "/api/undo", "/api/register"])
def test_a_deeply_nested_body_is_refused_in_one_sentence(study: Study, path: str, deep: int) -> None:
    asking = registered(study, "Ada")
    answer = '{"a": ' * deep + "{}" + "}" * deep
    body = f'{{"id": "{"a" * 32}", "number": 1, "seconds": 1, "name": 1, "answer": {answer}}}'
    refused = asking.post(path, content=body[:65000] if deep == 20_000 else body)
    assert refused.status_code == 422
    if deep > 31:
        assert refused.json() == {"detail": "this takes a JSON object of at most 65536 bytes, nested at most 32 deep"}
