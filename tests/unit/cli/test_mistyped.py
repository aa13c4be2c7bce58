"""Mistyped commands, options, names and values: one sentence each with the near miss, exit code 2, no traceback."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest

from merton.cli import main

EXPERIMENT = """name: x
agents:
  - {id: a, vla: hold}
tasks: [reach]
distortions: [jpeg]
"""


def written(**changes: str) -> str:
    """An experiment with other lines for some keys; a new key comes last."""
    lines = dict(line.split(":", 1) for line in EXPERIMENT.replace("\n  - ", " - ").splitlines())
    lines |= {key: f" {value}" for key, value in changes.items()}
    return "".join(f"{key}:{value}\n" for key, value in lines.items()).replace(" - ", "\n  - ")


COMMANDS = [
    # commands and options
    ("reprot latest", "`merton` has no command 'reprot'; did you mean `merton report`? "),
    ("leaderbord show x", "`merton` has no command 'leaderbord'; did you mean `merton leaderboard`? "),
    ("leaderboard shwo x", "`merton leaderboard` has no command 'shwo'; did you mean `merton leaderboard show`? "),
    ("leaderboard pack x", "`merton leaderboard` has no command 'pack'; did you mean `merton submission pack`? "),
    ("rescore x.mcap", "`merton` has no command 'rescore'; did you mean `merton recording rescore`? "),
    ("withdrow x 1", "`merton` has no command 'withdrow'; did you mean `merton submission withdraw`? "),
    ("replay latest", "`merton replay` is called `merton whatif` now"),
    ("xyzzy", "`merton` has no command 'xyzzy'; `merton --help` lists all"),
    ("--versoin", "`merton` has no option --versoin; did you mean '--version'? "),
    ("run x.yaml --resum", "`merton run` has no option --resum; did you mean '--resume'? "),
    ("model list --jsn", "`merton model list` has no option --jsn; did you mean '--json'? "),
    ("gate servo", "`merton gate` needs --against; "),
    ("dataset build", "`merton dataset build` needs --references and --out; "),
    ("distort gallery x.png there", "`merton distort gallery`: the place of the result is an option: --out there; "),
    ("errors 3o4", "unknown error code '3o4'; did you mean '304'? All "),
    ("run x.yaml y.yaml", "`merton run` has no use for the further words 'y.yaml'; "),
    ("run --runs", "--runs needs a value"),
    ("run --resume=3 x.yaml", "--resume takes no value"),
    ("monitor --port http", "`merton monitor`: --port must be a whole number, got 'http'"),
    ("monitor --port 99999", "`merton monitor`: --port must be at most 65535, got '99999'"),
    # names
    ("up simm", "unknown graph 'simm'; did you mean 'sim'? choose one of: gazebo, lab, replay, sim"),
    ("up sim --set real_time_facto=1", "unknown argument 'real_time_facto'; did you mean 'real_time_factor'? "),
    ("up sim --set real_time_factor=fast", "the argument real_time_factor must be a number, got 'fast'"),
    ("up sim --set real_time_factor", "--set takes name=value, got 'real_time_factor'"),
    ("model show pi0droid", "unknown model 'pi0droid'; did you mean 'pi0-droid'? All "),
    ("model check sevro", "unknown model 'sevro'; did you mean 'servo'? All "),
    (
        "distort x.png --name gausian_blur --level 3 -o y.png",
        "unknown distortion 'gausian_blur'; did you mean 'gaussian_blur'? ",
    ),
    ("run x.yaml --graph simm", "unknown graph 'simm'; did you mean 'sim'? "),
    ("gate sevro --against hold", "unknown agent or vla 'sevro'; did you mean 'servo'? "),
    ("gate servo --against hold --metric sucess", "unknown metric 'sucess'; did you mean 'success'? "),
    ("gate servo --against hold --budget soon", "--budget is a time such as 90s, 10m or 1h, got 'soon'"),
    ("report qickstart", "there is no run 'qickstart'; did you mean 'quickstart'? "),
    ("report lattest", "there is no run 'lattest'; did you mean 'latest'? "),
    ("report absent", "there is no run 'absent'; `merton runs` lists all"),
    (
        "new -o y.yaml --tasks pikc",
        "the new experiment: tasks, entry 1: unknown task 'pikc'; did you mean 'pick'? All ",
    ),
    ("new -o x.yaml", "x.yaml exists: choose another name"),
    ("run absent.yaml", "there is no experiment 'absent.yaml'; `merton new -o absent.yaml` writes it, and these "),
    ("plan quikstart", "there is no experiment 'quikstart'; did you mean 'quickstart'? "),
    ("run quickstart --set scens=3", "--set scens: no such key; did you mean 'scenes'? keys of an experiment: name, "),
]
EXPERIMENTS = [
    ({"distorsions": "[jpeg]"}, "line 6: distorsions: unknown key; did you mean 'distortions'? valid keys are: "),
    ({"distortions": "jpeg"}, "line 5: distortions: must be a list, got the text 'jpeg'"),
    (
        {"distortions": "[gausian_blur]"},
        "line 5: distortions, entry 1: unknown distortion 'gausian_blur'; did",
    ),
    ({"distortions": "[jpeg, jpeg]"}, "line 5: distortions, entry 2: distortion 'jpeg' is listed twice"),
    ({"levels": "[0, 9]"}, "line 6: levels, entry 2: must be at most 5, got 9"),
    ({"levels": "[2.5]"}, "line 6: levels, entry 1: must be a whole number, got 2.5: only `merton distort` takes "),
    (
        {"levels": "stairs"},
        "line 6: levels: must be 'one', 'staircase' or a list of levels such as [0, 3], got",
    ),
    ({"name": "My Experiment!"}, "line 1: name: must be lower-case letters, digits, _ and -, beginning with a letter"),
    ({"tasks": "[pcik]"}, "line 4: tasks, entry 1: unknown task 'pcik'; did you mean 'pick'? "),
    ({"agents": "[{id: a, vla: sevro}]"}, "line 2: agents, entry 1, vla: unknown vla 'sevro'; did you mean 'servo'? "),
    ({"agents": " - {id: A, vla: hold}"}, "line 3: agents, entry 1, id: must be lower-case letters"),
    ({"agents": "[]"}, "line 2: agents: must have at least 1 entry, got 0"),
    ({"vlm_camera": "tip"}, "line 6: vlm_camera: unknown camera 'tip'; did you mean 'top'? choose one of: side, top"),
    ({"sensor": "d456"}, "line 6: sensor: unknown sensor 'd456'; did you mean 'd455'? choose one of: d455, ideal"),
    ({"couple": "vla -> vlm"}, "line 6: couple: must be 'vlm -> vla', got the text 'vla -> vlm'; did you mean 'vlm -"),
    ({"scenes": "many"}, "line 6: scenes: must be a whole number, got the text 'many'"),
    ({"latency_s": "-1"}, "line 6: latency_s: must be at least 0, got -1"),
    ({"seed": "true"}, "line 6: seed: must be a whole number, got true"),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with an experiment, a picture and a run."""
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(EXPERIMENT)
    Path("runs/quickstart").mkdir(parents=True)
    Path("runs/quickstart/experiment.yaml").write_text(EXPERIMENT)


def said(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says on stderr before it ends as a user's mistake."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["merton", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (main.USER_MISTAKE, "")
    return printed.err


@pytest.mark.parametrize(("line", "sentence"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_mistyped_command_is_answered_with_one_sentence(
    line: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "distort" in line:
        import numpy as np

        from merton.perception.images import write_image

        write_image(np.zeros((16, 16, 3), dtype=np.uint8), Path("x.png"))
    answer = said(line, monkeypatch, capsys)
    assert answer.startswith(f"merton: {sentence}")
    assert answer.count("\n") == 1


@pytest.mark.parametrize(("changes", "sentence"), EXPERIMENTS, ids=[str(changes) for changes, _ in EXPERIMENTS])
def test_a_wrong_value_is_answered_with_its_place(
    changes: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("y.yaml").write_text(written(**changes))
    answer = said("run y.yaml --dry-run", monkeypatch, capsys)
    assert answer.startswith(f"merton: y.yaml, {sentence}")
    assert answer.count("\n") == 1


def test_a_picture_in_place_of_an_experiment_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("z.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    assert said("run z.yaml", monkeypatch, capsys) == "merton: z.yaml is not a text file\n"
