"""The package that `pip install .` installs: whole, the same bytes again, and its requirements written down once."""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "src" / "merton" / "merton"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel, built twice in processes of different hash seeds and clocks."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup")
    found = []
    for number in "12":
        folder = tmp_path_factory.mktemp(f"wheel{number}")
        code = f"from hatchling.build import build_wheel; build_wheel({str(folder)!r})"
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": number}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, capture_output=True)
        found += folder.glob("*.whl")
    return found


def kept(folder: Path) -> set[str]:
    """The files below a folder that belong to the sources, relative to it."""
    files = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {str(file.relative_to(folder)) for file in files if file.suffix not in (".pyc", ".nbi", ".nbc")}


def test_a_wheel_has_the_same_bytes_again(wheels: list[Path]) -> None:
    first, second = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels)
    assert first == second


def test_a_wheel_has_every_file_of_the_library_and_what_it_reads(wheels: list[Path]) -> None:
    names = {name for name in zipfile.ZipFile(wheels[0]).namelist() if name.startswith("merton/")}
    shared = {f"merton/share/{top}/{name}" for top in ("config", "urdf", "requirements") for name in kept(ROOT / top)}
    assert names == {f"merton/{name}" for name in kept(LIBRARY)} | shared


def test_colcon_installs_the_same_command(wheels: list[Path]) -> None:
    """By src/merton/setup.cfg, whose files tests/unit/foundations/test_foundation.py compares with those there."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "src/merton/setup.cfg", encoding="utf-8")
    installed = zipfile.ZipFile(wheels[0]).read("merton-0.1.0.dist-info/entry_points.txt").decode().split()
    assert installed == ["[console_scripts]", *settings["options.entry_points"]["console_scripts"].split()]


def test_a_wheel_asks_for_what_the_lists_name(wheels: list[Path]) -> None:
    metadata = message_from_bytes(zipfile.ZipFile(wheels[0]).read("merton-0.1.0.dist-info/METADATA"))
    asked = metadata.get_all("Requires-Dist") or []
    lists = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / "requirements").glob("*.txt")}
    assert set(metadata.get_all("Provides-Extra") or []) == lists.keys() - {"base", "bench", "build"}
    for name in ("base", "sim", "dataset"):
        pinned = set(re.findall(r"^([\w.-]+(?:\[\w+\])?==[\w.]+)", lists[name], re.MULTILINE))
        of_it = [
            line for line in asked if (f"extra == '{name}'" in line) or (name == "base" and "extra ==" not in line)
        ]
        assert {spelled(line) for line in of_it} == {spelled(line) for line in pinned}


def spelled(requirement: str) -> str:
    """A requirement as pip compares names, without its marker."""
    name, _, version = requirement.partition(";")[0].strip().partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"


def test_a_script_beside_a_checkout_finds_the_library(tmp_path: Path) -> None:
    """Its folder comes first on the path, and a checkout in it is a folder `merton` too."""
    (tmp_path / "merton").mkdir()
    (tmp_path / "merton" / "config").mkdir()
    script = tmp_path / "script.py"
    script.write_text("from merton.config import Model; print(Model.__name__)", encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "Model\n"


def test_a_trial_without_the_simulator_names_the_extra() -> None:
    code = "import sys; sys.modules['mujoco'] = None; import merton.experiment.local"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert "a trial in the simulated cell needs mujoco: install it with " in last
    assert last.endswith("requirements/sim.txt")
