"""Links for the people of a project, who they are, and how one of them withdraws."""

from __future__ import annotations

import hashlib
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.config import dumps, load
from merton.errors import InputError
from merton.web.access import Tokens
from merton_studies.people.invitations import LinkFile, invite
from merton_studies.people.ledger import Answer, Ledger, Slot
from merton_studies.people.project import Project, read_project

SETTINGS = {
    "name": "study",
    "title": "A study",
    "protocol": "quality",
    "items": {"images": {"folder": "images"}},
    "raters": ["Ada", "=Grace: [b]"],
    "ratings": 2,
}


def project_file(folder: Path, **changes: object) -> Path:
    file = folder / "PROJECT.yaml"
    file.write_text(dumps(SETTINGS | changes))
    return file


def project(folder: Path, **changes: object) -> Project:
    return read_project(project_file(folder, **changes)).project


def links(folder: Path) -> dict[str, str]:
    return load(folder / "links.yaml", LinkFile).links


def test_each_person_has_a_link_that_the_file_of_tokens_knows_by_its_hash(tmp_path: Path) -> None:
    done = invite(project(tmp_path), tmp_path / "links", "https://study.example.org/")
    assert done.new == ("Ada", "=Grace: [b]", "operator")
    tokens = Tokens(done.tokens)
    for owner, link in links(done.links.parent).items():
        address, token = link.split("#")
        assert (address, tokens.owner(token)) == ("https://study.example.org/", owner)
        assert len(token) >= 32
        assert token not in done.tokens.read_text()
        assert hashlib.sha256(token.encode()).hexdigest() in done.tokens.read_text()
    assert stat.S_IMODE(done.links.stat().st_mode) == 0o600


def test_a_link_stays_as_it_is_until_its_owner_leaves_the_project(tmp_path: Path) -> None:
    invite(project(tmp_path), tmp_path / "links", "http://localhost")
    before = links(tmp_path / "links")
    done = invite(project(tmp_path, raters=["Ada", "Emmy"]), tmp_path / "links", "http://localhost")
    after = links(tmp_path / "links")
    assert (done.new, done.removed) == (("Emmy",), ("=Grace: [b]",))
    assert list(after) == ["Ada", "Emmy", "operator"]
    assert {name: after[name] for name in ("Ada", "operator")} == {name: before[name] for name in ("Ada", "operator")}
    assert Tokens(done.tokens).owner(before["=Grace: [b]"].split("#")[1]) is None


def test_who_may_register_has_one_link_together(tmp_path: Path) -> None:
    invite(project(tmp_path, raters=9), tmp_path / "links", "http://localhost")
    assert list(links(tmp_path / "links")) == ["operator", "register"]


def test_invitations_that_would_be_wrong_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'operator' is the name of two"):
        invite(project(tmp_path, raters=["Ada", "operator"]), tmp_path / "links", "http://localhost")
    for url in ("study.example.org", "http://a b", "http://a/#b", "http://a\n"):
        with pytest.raises(InputError, match="an address begins with http"):
            invite(project(tmp_path), tmp_path / "links", url)
    invite(project(tmp_path), tmp_path / "links", "http://localhost")
    (tmp_path / "links" / "links.yaml").unlink()
    with pytest.raises(InputError, match="has no links"):
        invite(project(tmp_path), tmp_path / "links", "http://localhost")


def test_a_definition_names_no_person(tmp_path: Path) -> None:
    """So one who withdraws is not in it, and can be replaced while the study runs."""
    first, second = (read_project(project_file(tmp_path, raters=names)) for names in (["Ada", "Emmy"], ["Ada", "Lise"]))
    assert "Ada" not in first.definition
    assert first.definition == second.definition
    assert first.definition != read_project(project_file(tmp_path, raters=["A", "B", "C"])).definition


def test_the_commands_list_and_withdraw(tmp_path: Path) -> None:
    file = project_file(tmp_path)
    loaded = read_project(file)
    with Ledger(loaded.record, "study", loaded.definition) as ledger:
        ledger.register("Ada")
        ledger.register("=Grace: [b]")
        ledger.hand_out(
            [Slot(rater, n, f"i{n}", "design", "2026-01-01T00:00:00") for rater in ("R01", "R02") for n in (1, 2)]
        )
        for rater in ("R01", "R02"):
            answer = Answer(
                f"{rater}-1", rater, 1, "i1", "design", {"quality": 4}, 2.5, "2026-01-01T10:20:30.000+00:00"
            )
            ledger.save(answer)
        ledger.save(replace(answer, id="R02-2", number=2, item="i2", seconds=3.5))
    run = CliRunner().invoke(app, ["people", "list", str(file)])
    lines = [line.split() for line in run.output.splitlines()]
    assert lines[1] == ["R01", "Ada", "rater", "2", "1", "2.5", "2026-01-01", "10:20"]
    assert lines[2] == ["R02", "=Grace:", "[b]", "rater", "2", "2", "3.0", "2026-01-01", "10:20"]
    refused = CliRunner().invoke(app, ["people", "withdraw", str(file), "R09"])
    assert isinstance(refused.exception, InputError) or refused.exit_code == 2
    gone = CliRunner().invoke(app, ["people", "withdraw", str(file), "R02"])
    assert "R02: 2 answers and the name removed" in gone.output
    with Ledger(loaded.record, "study", loaded.definition) as ledger:
        assert [rater.name for rater in ledger.raters()] == ["Ada"]


def test_asking_about_a_study_that_was_never_served_makes_no_record(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["people", "list", str(project_file(tmp_path))])
    assert run.exit_code != 0
    assert "study has no answers yet: `merton people serve` makes their record" in f"{run.output}{run.exception}"
    assert not (tmp_path / "people.sqlite").exists()
