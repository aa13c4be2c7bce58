"""`merton world`: list, add, check and serve, as a user sees them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner
from worlds_of_a_lab import Lab

from merton.cli.main import app
from merton.errors import InputError
from merton.worlds.client import HostedWorld
from merton.worlds.hosted.world_wire import READY, TOKEN
from merton.worlds.link import Address

HERE = {"interpreter": sys.executable}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab's folder."""
    return Lab(tmp_path, monkeypatch)


def run(words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `merton world ...`."""
    result = CliRunner().invoke(app, ["world", *words.split()], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def cells(text: str) -> dict[str, list[str]]:
    """The lines of a table by their first cell."""
    return {line.split()[0]: re.split(r" {2,}", line.rstrip()) for line in text.splitlines()}


@pytest.mark.parametrize("command", ["", "list", "add", "check", "serve"])
def test_the_help_fits_a_screen(command: str) -> None:
    lines = run(f"{command} --help")[1].splitlines()
    assert 0 < len(lines) <= 43
    assert max(map(len, lines)) <= 80


def test_a_list_says_where_each_world_is(lab: Lab) -> None:
    lab.has(point=HERE, other=HERE, far={"adapter": "", "address": "gpu:8010"})
    assert run("add point")[:2] == (
        0,
        "point: 2 tasks with 100 scenes, cameras above; able: fork, expert, depth, things, progress\n",
    )
    code, out, err = run("list")
    rows = cells(out)
    assert code == 0
    assert rows["ur5"][1:2] == ["here"]
    assert rows["libero"][1:2] == rows["other"][1:2] == rows["far"][1:2] == ["not added"]
    assert rows["point"][1:4] == ["environment", "2", "1"]
    assert rows["point"][4].startswith("point 1.0, numpy")
    assert f"world point is from {lab.catalogue}" in err
    lab.has(point={**HERE, "settings": {"scenes": 3}})
    assert cells(run("list")[1])["point"][1] == "to be added again"


def test_a_list_for_programs_has_the_descriptions(lab: Lab) -> None:
    lab.has(point=HERE)
    run("add point")
    worlds = {world["name"]: world for world in json.loads(run("list --json")[1])}
    assert worlds["libero"]["described"] is None
    assert worlds["libero"]["python"] == ["3.11"]
    assert [task["name"] for task in worlds["point"]["described"]["tasks"]] == ["reach", "touch"]


def test_a_check_of_a_world_that_keeps_its_promises(lab: Lab) -> None:
    lab.has(point=HERE)
    run("add point")
    code, out, _ = run("check point")
    assert code == 0, out
    name, *findings = out.splitlines()
    assert name == "point"
    assert [line.split()[:2] for line in findings] == [
        ["ok", subject] for subject in ("start", "scenes", "pictures", "rows", "fork", "expert")
    ]


BROKEN = {
    "scenes": (
        "default_rng([scene, len(task)])",
        "default_rng()",
        "scene 0 of reach is another one after a scene of touch: it differs in ",
    ),
    "pictures": (
        "picture = np.full(",
        "self.point = self.point + 1e-9; picture = np.full(",
        "a row after looking leads elsewhere than without: it differs in base_from_tool of the state and point of",
    ),
    "fork": (
        "self.random.bit_generator.state, self.begun, self.task = snapshot",
        "_, self.begun, self.task = snapshot",
        "3 rows after going back lead elsewhere than before: it differs in ",
    ),
    "expert": (
        "return np.clip(self.goal - self.point",
        "self.calls = getattr(self, 'calls', 0) + 1; return self.calls / 100 * np.clip(self.goal - self.point",
        "the expert decides otherwise if it is asked for one row at a time, from row 0 on",
    ),
}
"""Subject of a finding to a part of the toy world, the part that breaks its promise, and the finding."""


@pytest.mark.parametrize("subject", BROKEN)
def test_a_broken_promise_is_told_with_what_differs(lab: Lab, subject: str) -> None:
    kept, broken, sentence = BROKEN[subject]
    code = lab.adapter.read_text()
    assert kept in code
    lab.adapter.write_text(code.replace(kept, broken))
    lab.has(point=HERE)
    run("add point")
    status, out, _ = run("check point")
    assert status == 1, out
    assert re.search(rf"wrong {subject} +{re.escape(sentence)}", out.splitlines()[-1]), out


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"trouble": "gives NaN", "after": 1}, "gave nan in point"),
        ({"trouble": "fails", "after": 1}, "failed at carry_out: KeyError: 'joint 7'"),
        ({"trouble": "hangs", "after": 1}, "it did not answer within 0.5 s, and its process was ended"),
        ({"trouble": "is killed", "after": 1}, "its process was ended by SIGKILL; it last wrote: memory is short"),
    ],
)
def test_a_failing_world_costs_one_sentence(lab: Lab, settings: dict[str, object], sentence: str) -> None:
    lab.has(point={**HERE, "settings": settings, "deadline_s": 0.5 if settings["trouble"] == "hangs" else 60.0})
    run("add point")
    code, out, _ = run("check point")
    assert code == 1
    last = out.splitlines()[-1]
    assert last.split()[0] == "wrong", out
    assert sentence in last


def test_a_world_of_another_version_is_refused(lab: Lab) -> None:
    """The package changed in its environment, and the entry did not."""
    lab.adapter.with_name("version").write_text("1.0")
    read = f"open({str(lab.adapter.with_name('version'))!r}).read()"
    lab.adapter.write_text(lab.adapter.read_text().replace('"point": self.version', f'"point": {read}'))
    lab.has(point=HERE)
    run("add point")
    lab.adapter.with_name("version").write_text("2.0")
    code, out, _ = run("check point")
    assert code == 1
    assert "world 'point' is not the one of before: point 1.0 -> 2.0" in out


def test_without_names_all_worlds_that_were_added_are_checked(lab: Lab) -> None:
    lab.has(point=HERE, other=HERE)
    with pytest.raises(InputError, match="no world was added to this machine yet"):
        run("check")
    run("add point")
    names = [line for line in run("check")[1].splitlines() if not line.startswith(" ")]
    assert names == ["point"]


def test_a_world_is_served_to_who_has_the_token(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.has(point=HERE)
    run("add point")
    monkeypatch.setenv(TOKEN, "hush")
    command = [sys.executable, "-m", "merton", "world", "serve", "point", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith(READY)
            host_and_port = address.removeprefix(READY)
            lab.has(far={"adapter": "", "address": host_and_port})
            assert run("add far")[0] == 0
            assert cells(run("list")[1])["far"][1] == host_and_port
            code, out, _ = run("check far")
            assert code == 0, out
            stranger = HostedWorld("far", Address("127.0.0.1", int(host_and_port.rpartition(":")[2]), "guess"))
            with pytest.raises(Exception, match="its token is another one"):
                stranger.reset("reach", 0)
        finally:
            process.terminate()
    assert process.returncode == -signal.SIGTERM  # the command has become the host, of which none is left behind


def test_mistakes(lab: Lab) -> None:
    lab.has(point=HERE)
    for words, sentence in (
        ("add pont", "unknown world 'pont'; did you mean 'point'"),
        ("add ur5", "there is nothing to add"),
        ("check pont", "unknown world 'pont'"),
        ("check ur5", "there is nothing to check"),
        ("serve point", "is not on this machine: `merton world add point`"),
    ):
        with pytest.raises(InputError, match=sentence):
            run(words)
