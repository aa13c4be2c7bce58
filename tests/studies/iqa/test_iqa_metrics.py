"""`merton iqa list`, `show` and `check`, and the example of docs/use/adding_a_metric.md."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pyiqa_stand_in import StandIn
from ruamel.yaml import YAML
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import UnknownNameError
from merton.models.catalogue import VARIABLE
from merton.perception.quality import METRICS, measure
from merton.perception.quality.catalogue import CATALOGUE
from merton.perception.quality.learned import TRAINABLE
from sources import ROOT


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and stdout of `merton iqa`."""
    result = CliRunner().invoke(app, ["iqa", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout


def test_the_command_lists_shows_and_checks(stand_in: StandIn) -> None:
    listed = json.loads(run("list", "--json")[1])
    names = [metric["name"] for metric in listed]
    assert len(set(names)) == len(names)
    assert [name for name in names if name in list(METRICS) or name in CATALOGUE] == [*METRICS, *CATALOGUE]
    assert set(TRAINABLE) <= set(names)
    assert run("show", "cnniqa")[1].startswith("name: cnniqa\n")
    assert run("check", "cnniqa") == (
        1, "missing: cnniqa has no weights here: `merton iqa train` makes them\n",
    )  # fmt: skip
    shown = YAML(typ="safe").load(run("show", "topiq_fr")[1])
    assert shown["iqa"][0]["settings"] == {"metric": "topiq_fr"}
    assert "Xue et al. 2014" in run("show", "gmsd")[1]
    code, text = run("check", "topiq_fr")
    assert code == 0
    assert text.startswith("ok: topiq_fr is ")
    assert "0.0000 for its reference" in text
    assert run("check", "ssim")[1].startswith("ok: ssim is 0.")


def test_the_check_says_in_one_sentence_what_is_missing(no_pyiqa_server: None) -> None:
    code, text = run("check", "topiq_fr")
    assert code == 1
    assert text.startswith("missing: topiq_fr is measured by a server of pyiqa: ")
    assert text.count("\n") == 1
    with pytest.raises(UnknownNameError, match="did you mean 'topiq_fr'"):
        run("check", "topiqfr")


def test_the_example_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class and the entry of adding_a_metric.md, as a lab would copy them, and the command that the page names."""
    page = (ROOT / "docs/use/adding_a_metric.md").read_text(encoding="utf-8")
    for kind, name in (("python", "dark.py"), ("yaml", "lab.yaml")):
        (text,) = re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lab.yaml"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(CATALOGUE, "_read", False)
    monkeypatch.setattr(CATALOGUE, "_entries", {})
    image = np.full((4, 6, 3), 200, np.uint8)
    image[:, :2] = 29  # two of six columns lie below the limit of the entry
    image[:, 2, :2] = 0  # one value above the limit: not dark
    assert measure("dark_share", image) == pytest.approx(2 / 6)
    result = CliRunner().invoke(app, ["iqa", "check", "dark_share"], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stdout.startswith("ok: dark_share is ")
