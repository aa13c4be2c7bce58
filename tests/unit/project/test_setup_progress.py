"""What the set-up shows while pip, cmake and compileall run: read from lines that they printed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "tools" / "progress.py"
_spec = spec_from_file_location("setup_progress", PROGRAM)
assert _spec is not None
assert _spec.loader is not None
progress = sys.modules[_spec.name] = module_from_spec(_spec)
_spec.loader.exec_module(progress)

PIP = """\
Collecting ros-jazzy-rclpy==7.1.6 (from ros-jazzy-rclpy[fastrtps]==7.1.6->-r requirements/ros.txt (line 3))
  Downloading ros_jazzy_rclpy-7.1.6-py3-none-any.whl.metadata (1.1 kB)
Collecting mujoco_core==4.0.0
  Downloading mujoco_core-4.0.0-cp311-cp311-manylinux_2_28_x86_64.whl (9.6 MB)
Progress 0 of 9600000
Progress 2400000 of 9600000
"""
MAKE = """\
-- Build files have been written to: build/merton_interfaces
[  3%] Built target merton_interfaces__rosidl_generator_type_description
[ 25%] Building C object CMakeFiles/merton_interfaces__rosidl_generator_c.dir/msg/detail/action_chunk__functions.c.o
"""


def state(output: str, elapsed_s: float = 10.0, **known: object) -> str:
    reader = progress.Reader(began_s=1000.0, **known)
    for line in output.splitlines():
        reader.feed(line)
    text: str = reader.state(1000.0 + elapsed_s)
    return text


def test_a_download_has_its_size_its_count_and_the_time_left() -> None:
    """2.4 of 24 MB in 10 s leave 90 s; the metadata of a package is no download of its own."""
    assert state(PIP, about_mb=24) == "2 of about 24 MB, 1 packages, about 1 min 30 s left"
    assert state(PIP) == "2 MB, 1 packages", "nothing is said of a total that is not known"


def test_what_is_in_the_cache_counts_as_here() -> None:
    cached = "  Using cached torch-2.13.0-cp311-none-linux_x86_64.whl (191.8 MB)\n"
    assert state(PIP.replace("Progress 2400000", "Progress 9600000") + cached) == "201 MB, 2 packages"


def test_installed_packages_are_counted_in_their_folder(tmp_path: Path) -> None:
    """Names are compared as pip does; a package from before the command does not count."""
    (tmp_path / "ruamel_yaml-0.19.1.dist-info").mkdir()
    old = tmp_path / "numpy-2.4.6.dist-info"
    old.mkdir()
    os.utime(old, (1, 1))
    output = PIP + "Installing collected packages: numpy, ruamel.yaml, mujoco_core\n"
    assert state(output, packages=tmp_path) == "10 MB, 1 of 3 packages installed"


def test_the_makefiles_of_cmake_say_how_far_they_are() -> None:
    assert state(MAKE) == "25 % compiled, about 30 s left"


def test_byte_code_and_counted_parts() -> None:
    assert (
        state("Listing 'lib'...\nCompiling 'lib/a.py'...\n" * 2, about_files=8) == "2 files compiled, about 30 s left"
    )
    assert state("1/5 distortions\n") == "1 of 5: distortions", "nothing is done yet to tell a time from"
    assert state("1/5 distortions\n3/5 ratings\n") == "3 of 5: ratings, about 15 s left"
    assert state("Compiling is silent\n") == ""


def test_lines_are_redrawn_on_a_terminal_and_repeated_elsewhere(tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    other = tmp_path / "beside"
    other.write_text("interfaces: 12 %", encoding="utf-8")
    shown = []
    for screen in (Terminal(), io.StringIO()):
        line = progress.Line("ROS 2", screen, None, other)
        for elapsed_s in (0.0, 0.1, 3.0, 5.0):
            line.show("half", elapsed_s)
        line.end(75.0, failed=False)
        shown.append(screen.getvalue())
    redrawn, repeated = shown
    assert redrawn.count("\r\x1b[KROS 2: half") == 3, "not twice in a tenth of a second"
    assert redrawn.endswith("\r\x1b[KROS 2 ... 1 min 15 s\n")
    assert (
        repeated == "ROS 2: half (0 s); interfaces: 12 %\nROS 2: half (5 s); interfaces: 12 %\nROS 2 ... 1 min 15 s\n"
    )


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_keeps_its_exit_code_and_its_output(tmp_path: Path, code: int) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", f"print('Progress 1 of 2'); print('the reason'); raise SystemExit({code})"]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--title", "ROS 2", "--log", str(log), "--", *command],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, log.read_text(encoding="utf-8")) == (code, "the reason\n")
    assert done.stderr.splitlines()[-1].startswith("ROS 2 ... ")
    assert ("failed" in done.stderr) == (code != 0)
