"""`merton doctor --licences`: every installed package has a row."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PathDistribution, requires
from pathlib import Path

import pytest

from merton.cli.doctor import doctor_command, orphaned_ports
from merton.cli.licences import UNNAMED, _licence_of_ros, licences


def package(folder: Path, name: str, *fields: str) -> Distribution:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *fields]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return PathDistribution(info)


def test_a_licence_is_read_where_its_package_names_it(tmp_path: Path) -> None:
    old = "Classifier: License :: OSI Approved"
    installed = [
        package(tmp_path, "text", "License: Permission is hereby granted, free of charge, to any person obtaining it"),
        package(tmp_path, "new", "License-Expression: MIT", f"{old} :: BSD License"),
        package(tmp_path, "Dual", f"{old} :: MIT License", f"{old} :: Apache Software License"),
        package(tmp_path, "field", old, "License: BSD 3-Clause"),
    ]
    rows = [(name, licence) for name, _, licence in licences(installed)]
    assert rows == [
        ("Dual", "MIT License or Apache Software License"),
        ("field", "BSD 3-Clause"),
        ("new", "MIT"),
        ("text", UNNAMED),
    ]


def test_the_wheels_of_ros_have_theirs_in_package_xml(tmp_path: Path) -> None:
    (tmp_path / "std_msgs").mkdir()
    (tmp_path / "std_msgs" / "package.xml").write_text("<license>Apache License 2.0</license><license>MIT</license>")
    assert _licence_of_ros("ros-jazzy-std-msgs", tmp_path) == "Apache License 2.0 and MIT"
    assert _licence_of_ros("numpy", tmp_path) == ""


def test_every_requirement_of_the_library_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    doctor_command(licences=True)
    rows = {re.sub(r"[-_.]+", "-", line.split()[0]).lower() for line in capsys.readouterr().out.splitlines()}
    needed = [line for line in requires("merton") or [] if "extra ==" not in line]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line)[0]).lower() for line in needed}
    assert len(names) > 10
    assert names <= rows


def test_ports_without_memory_are_counted(tmp_path: Path) -> None:
    for name in ("fastrtps_port7000", "fastrtps_port7000_el", "fastrtps_port7001_el", "fastrtps_0011_el"):
        (tmp_path / name).touch()
    assert orphaned_ports(tmp_path) == 1
