"""The distribution `lerobot_policy_merton`: found by lerobot, of Merton's version, with what it needs."""

from __future__ import annotations

import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from test_packaging import built

import merton

PLUGIN = Path(merton.__file__).parents[3] / "src/lerobot_policy_merton"


def test_the_wheel_has_the_name_by_which_lerobot_finds_plug_ins(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup")
    built(PLUGIN, tmp_path, "wheel", "1", "hatchling.build")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        said = message_from_bytes(wheel.read(metadata))
    # lerobot.utils.import_utils.register_third_party_plugins imports the Name as it is written, by its prefix
    assert (said["Name"], said["Version"]) == ("lerobot_policy_merton", merton.__version__)
    modules = {path.relative_to(PLUGIN).as_posix() for path in PLUGIN.rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    wanted = {Requirement(line).name: str(Requirement(line).specifier) for line in said.get_all("Requires-Dist") or []}
    assert wanted == {"lerobot": ">=0.4.4", "merton": f"=={merton.__version__}"}


def test_lerobot_finds_the_parts_of_a_policy_type_by_the_names_of_files() -> None:
    folder = PLUGIN / "lerobot_policy_merton"
    assert {"configuration_merton.py", "modeling_merton.py", "processor_merton.py"} <= {
        file.name for file in folder.iterdir()
    }
