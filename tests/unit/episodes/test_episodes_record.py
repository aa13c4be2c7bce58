"""The record of episodes: durable before it is acknowledged, never doubled, made again from its journal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scripted_episodes import act, carry_out, pictures

from merton.episodes.design import Condition, Design
from merton.episodes.episode import MOST_PICTURES
from merton.episodes.folder import EpisodesFolder
from merton.episodes.history import WITHOUT_END
from merton.episodes.journal import JOURNAL, Journal
from merton.episodes.run import DIED, EpisodesRun
from merton.errors import ErrorCode, FileError, InfrastructureError, InputError
from merton.results.records import Outcome, Reference
from merton.results.store import ResultStore

DESIGN = Design(name="some", distortions=("jpeg", "max_darken"), levels=(2, 5))


def made(path: Path, scenes: int = 2, visits: int = 5) -> Path:
    with EpisodesRun.create(path, DESIGN, "run") as run:
        carry_out(run, range(scenes), visits)
    return path / "run"


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize(("name", "part"), [("jpeg", "steps.3.."), ("frozen", "all")])
def test_the_first_picture_that_looks_other_than_sent_is_kept(tmp_path: Path, name: str, part: str, every: int) -> None:
    design = Design(name="some", distortions=(name,), levels=(1,), attribute=("steps",), clean_every=every)
    with EpisodesRun.create(tmp_path, design, "run") as run:
        episode = run.begin("a", "push-v3", 0, Condition(name, 1, part))
        changed = []
        for step in range(40):
            clean = pictures(0, step)
            shown = episode.show(step, clean)
            changed += [step] if any(shown[camera] is not clean[camera] for camera in clean) else []
        episode.end(True)
    (past,) = EpisodesFolder.read(run.path).episodes
    assert past.end is not None
    kept = {frame["step"] for frame in past.end["frames"]}
    assert changed[0] > 0
    assert {0, changed[0]} <= kept
    assert len(kept) == (MOST_PICTURES if every else 2)


def test_conditions_of_a_run_are_those_of_its_design_and_all_that_were_asked_for(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, Design(name="none"), "run") as run:
        for agent, conditions in (("a", [Condition(), Condition("late", 2)]), ("b", [Condition()])):
            for condition in conditions:
                episode = run.begin(agent, "push-v3", 0, condition)
                episode.end(True)
    found = EpisodesFolder.read(run.path)
    assert found.conditions("push-v3", 0) == {Condition(), Condition("late", 2)}
    assert found.conditions("push-v3", 1) == {Condition()}
    assert (found.counts.recorded, found.planned()) == (3, 4)


def test_a_folder_holds_design_record_journal_and_trials(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert {file.name for file in run.iterdir()} == {
        "design.yaml",
        "run.json",
        "results.sqlite",
        "episodes.jsonl",
        "trials",
    }
    found = EpisodesFolder.read(run)
    assert (found.id, found.agents, found.counts.recorded, found.planned()) == ("run", ["policy"], 10, 10)
    record = next(record for record in found.records() if record.case.id == "push-v3.1.jpeg.5")
    assert record.outcome is Outcome.FAILURE
    assert (record.progress, record.execution, record.reference, record.steps) == (None, None, Reference.NONE, 3)
    assert record.decision is not None
    assert all(item.progress == (1.0 if item.success else None) for item in found.records())
    files = {file.name for file in (run / "trials" / record.id).iterdir()}
    assert files == {"trial.json", *(f"00_{c}_{s}.jpg" for c in ("front", "wrist") for s in ("reference", "distorted"))}
    about = json.loads((run / "run.json").read_text())
    assert (about["kind"], about["latency"]) == ("episodes", {"p50_ms": 1.0, "p99_ms": 1.0, "n": 30})
    assert about["episodes"]["recorded"] == 10
    assert about["pairs"] == {"kept": 8, "alone": 0, "broken": []}


def test_a_given_file_is_copied_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("# why\nname: mine\ndistortions: [jpeg]\n")
    with EpisodesRun.create(tmp_path, file) as run:
        assert (run.path / "design.yaml").read_bytes() == file.read_bytes()
        assert run.path.name.startswith("mine-")
    EpisodesRun.create(tmp_path / "runs", file, "x").close()
    with pytest.raises(InputError, match=r"runs/x exists; continue it with --resume"):
        EpisodesRun.create(tmp_path / "runs", file, "x")


def test_names_and_scenes_are_checked(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        with pytest.raises(InputError, match="agent: must be lower-case letters"):
            run.begin("lerobot/act", "push-v3", 0)
        for scene in (-1, True, 2**63, 1.5):
            with pytest.raises(InputError, match="the number of a scene must be a whole number"):
                run.begin("a", "push-v3", scene)  # type: ignore[arg-type]
        assert run.counts.begun == 0


def test_an_end_is_in_record_and_journal_before_it_returns(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        episode = run.begin("a", "push-v3", 0)
        act(episode)
        assert episode.end(True)
        assert not episode.end(False)
        found = EpisodesFolder.read(run.path)
        assert [record.success for record in found.records()] == [True]
        assert [past.success for past in found.episodes] == [True]


def test_an_episode_without_a_result_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for why in ("", "the connection closed"):
            episode = run.begin("a", "push-v3", 0)
            act(episode)
            episode.end(None, why)
    found = EpisodesFolder.read(tmp_path / "run")
    assert found.counts.without_end == 2
    assert sorted(record.error_message for record in found.records()) == sorted([WITHOUT_END, "the connection closed"])
    assert all(
        record.outcome is Outcome.FAILURE and record.error_code == ErrorCode.NO_END for record in found.records()
    )


def test_notes_stand_in_record_and_trial(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        episode = run.begin("a", "push-v3", 0, instruction="push it")
        act(episode)
        episode.decided(1, [np.nan, 1.0])
        episode.note("the shadow session failed")
        episode.note("the shadow session failed")
        episode.end(True)
    record = EpisodesFolder.read(tmp_path / "run").records()[0]
    assert record.error_message == "the answer at step 1 is no rows of finite numbers; the shadow session failed"
    detail = json.loads((tmp_path / "run/trials" / record.id / "trial.json").read_text())
    assert (detail["instruction"], detail["task_name"], len(detail["notes"])) == ("push it", "push-v3", 2)


def test_no_second_process_writes_a_run(tmp_path: Path) -> None:
    run = EpisodesRun.create(tmp_path, DESIGN, "run")
    with pytest.raises(InputError, match="another recorder of episodes is at work"):
        EpisodesRun.open(run.path)
    run.close()
    EpisodesRun.open(run.path).close()
    with pytest.raises(InputError, match="is closed"):
        run.begin("a", "push-v3", 0)


def test_a_run_goes_on_with_the_design_that_it_began_with_alone(tmp_path: Path) -> None:
    run = made(tmp_path)
    about = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**about, "reference_width_px": 320}))
    with pytest.raises(InputError, match="hold at 320 pixels, and today's hold at 640"):
        EpisodesRun.open(run)
    (run / "run.json").write_text(json.dumps(about))
    design = (run / "design.yaml").read_text()
    (run / "design.yaml").write_text(design.replace("jpeg", "lens_blur"))
    with pytest.raises(InputError, match=r"design\.yaml is not the design that the run began with"):
        EpisodesRun.open(run)
    (run / "design.yaml").write_text(design)
    EpisodesRun.open(run).close()


def test_a_damaged_run_json_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    run = made(tmp_path)
    about = run / "run.json"
    whole = about.read_bytes()
    about.write_bytes(whole[: len(whole) // 2])
    for read in (EpisodesFolder.read, EpisodesRun.open):
        with pytest.raises(InputError, match=r"no design\.yaml or another kind in its run\.json"):
            read(run)
    assert about.read_bytes() == whole[: len(whole) // 2]
    about.write_bytes(whole)
    opened = EpisodesRun.open(run)
    about.write_bytes(whole[:-9])
    with pytest.raises(InfrastructureError, match=r"run\.json cannot be read any more"):
        opened.close()
    assert about.read_bytes() == whole[:-9]
    about.write_bytes(whole)
    EpisodesRun.open(run).close()
    assert about.read_bytes() == whole


def test_a_torn_last_line_is_cut_off_and_said(tmp_path: Path) -> None:
    run = made(tmp_path)
    whole = (run / JOURNAL).read_bytes()
    (run / JOURNAL).write_bytes(whole + b'{"event":"begin","epis')
    assert EpisodesFolder.read(run).counts.begun == 10
    with EpisodesRun.open(run) as opened:
        assert ["its last line was torn (22 bytes) and is cut off" in text for text in opened.said] == [True]
        assert opened.counts.begun == 10
    assert (run / JOURNAL).read_bytes() == whole


def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path) -> None:
    run = made(tmp_path)
    lines = (run / JOURNAL).read_bytes().splitlines(keepends=True)
    (run / JOURNAL).write_bytes(b"".join([*lines[:3], b"]\n", *lines[4:]]))
    for read in (EpisodesFolder.read, EpisodesRun.open):
        with pytest.raises(FileError, match=r"episodes\.jsonl, line 4: is no JSON object"):
            read(run)


def test_a_line_that_the_disk_refuses_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / JOURNAL)
    journal.append({"event": "begin", "episode": 0})
    before = (tmp_path / JOURNAL).read_bytes()
    write = os.write

    def full(file: int, content: memoryview) -> int:
        if len(content) < 20:
            raise OSError(28, "No space left on device")
        return write(file, content[:20])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InfrastructureError, match="No space left"):
        journal.append({"event": "end", "episode": 0, "why": "x" * 15})
    monkeypatch.undo()
    assert (tmp_path / JOURNAL).read_bytes() == before
    journal.append({"event": "end", "episode": 0})
    assert [line["event"] for line in journal.lines] == ["begin", "end"]
    journal.close()


def test_the_record_and_the_trials_are_made_again_from_the_journal(tmp_path: Path) -> None:
    run = made(tmp_path)
    records, details = EpisodesFolder.read(run).records(), sorted((run / "trials").glob("*/trial.json"))
    content = [file.read_bytes() for file in details]
    (run / "results.sqlite").unlink()
    for file in details[::2]:
        file.unlink()
    with EpisodesRun.open(run) as opened:
        assert opened.said == ("10 results of the journal were not yet in the record and are entered",)
    assert EpisodesFolder.read(run).records() == records
    assert [file.read_bytes() for file in details] == content


def test_a_refresh_changes_nothing_where_nothing_is_new(tmp_path: Path) -> None:
    run = made(tmp_path)
    before = {file: file.read_bytes() for file in run.rglob("*") if file.suffix in (".json", ".jpg", ".jsonl")}
    with ResultStore(run, read_only=True) as store:
        rows = store.records()
    EpisodesRun.open(run).close()
    with ResultStore(run, read_only=True) as store:
        assert store.records() == rows
    assert before == {file: file.read_bytes() for file in before}


PARENT = """
import os, signal, sys
from pathlib import Path
from merton.episodes.run import EpisodesRun
from scripted_episodes import act

def record(path, ends, share):
    steps, last = 0, 0

    def count(frame, event, argument):
        nonlocal steps
        steps += "merton/episodes/" in frame.f_code.co_filename
        if last and steps > share * last:
            os.kill(os.getpid(), signal.SIGKILL)

    with EpisodesRun.open(path) as run:
        for number in range(ends + 9):  # the one before may have taken more calls than those that follow
            if number == ends - 1:
                sys.setprofile(count)  # sees every call of Python and of C; those of the record's own code count
            if number <= ends:
                steps, last = 0, steps if number == ends else 0
            episode = run.begin("policy", "push-v3", number % 5)
            act(episode, 2)
            episode.end(True)
            print(episode.number, episode.condition.case(episode.task, episode.scene).id, flush=True)

for line in sys.stdin:
    ends, share = line.split()
    child = os.fork()
    if not child:
        record(Path(sys.argv[1]), int(ends), float(share))
        os._exit(1)
    _, status = os.waitpid(child, 0)
    print("ended by", -os.waitstatus_to_exitcode(status), flush=True)
"""
"""A program that imports once. For each line that it reads, it forks a recorder that kills itself in the midst of the
episode after so many: after a share of the calls that the episode before took, wherever the clock stands."""


def killed(parent: subprocess.Popen[str], ends: int, share: float) -> list[str]:
    """The lines that a recorder acknowledged before it was killed.

    Args:
        ends: episodes before it; at least 2, since the first of a process imports and takes more calls.
        share: of the calls of an episode, 0 to 1.
    """
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(f"{ends} {share}\n")
    parent.stdin.flush()
    told = []
    while not (line := parent.stdout.readline()).startswith("ended by ") and line:
        told.append(line.removesuffix("\n"))
    assert line == f"ended by {int(signal.SIGKILL)}\n"
    assert ends <= len(told) < ends + 9
    return told


def test_nothing_acknowledged_is_lost_and_nothing_doubled_by_20_kills(tmp_path: Path) -> None:
    names = ("jpeg", "max_darken", "gaussian_blur", "white_noise", "lens_blur", "motion_blur")
    design = Design(name="some", distortions=names, levels=(1, 2, 3, 4, 5))
    EpisodesRun.create(tmp_path, design, "run").close()
    run, rng, told = tmp_path / "run", np.random.default_rng(0), []
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(run)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    with parent:
        for place in range(20):
            told += killed(parent, int(rng.integers(2, 4)), (place + float(rng.uniform())) / 20)
    with EpisodesRun.open(run) as opened:
        given_up = sum(past.lost is not None and past.lost["why"] == DIED for past in opened.episodes())
    found = EpisodesFolder.read(run)
    ids = [past.case.id for past in found.episodes if past.is_recorded and past.end is not None]
    acknowledged = {line.split()[1] for line in told}
    assert len(told) == len(acknowledged) >= 40
    assert acknowledged <= set(ids)
    assert len(ids) == len(set(ids)) == len(found.records())
    assert {record.case.id for record in found.records()} == set(ids)
    assert len(ids) - len(acknowledged) <= 20, "an end that was not told is one for each kill, at most"
    assert 1 <= given_up <= 20
    assert found.counts.open == 0
    assert found.pairs.broken == ()
