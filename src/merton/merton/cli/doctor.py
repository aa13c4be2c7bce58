"""`merton doctor`: checks whether everything that Merton needs is installed and works, and names each remedy."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from merton.cli.console import STDOUT, print_out, working
from merton.errors import SYSTEM_PACKAGES, MertonError, install_line
from merton.extras import EXTRAS, absent
from merton.files import resource
from merton.graph.spec import graph_names, load_graph
from merton.graph.supervisor import claim_domain, environment, find_executable
from merton.models.base import Finding


def doctor_command(
    licences: Annotated[
        bool, typer.Option("--licences", help="Only list all installed packages with version and licence.")
    ] = False,
) -> None:
    """Check ROS, OpenGL, the simulator and ports, say how to mend what is missing, and list the optional parts."""
    if licences:
        from merton.cli import licences as packages

        for name, version, licence in packages.licences():
            print_out(f"{name:<40} {version:<16} {licence}")
        return
    findings = []
    for check in CHECKS:
        with working(f"checking: {check[0]}"):
            finding = _finding(*check)
        findings.append(finding)
        mark = "[green]ok  [/]" if finding.ok else "[red]fail[/]"
        STDOUT.print(f"{mark} {finding.subject:<14} {escape(finding.detail)}", highlight=False, soft_wrap=True)
        if not finding.ok:
            print_out(f"     {'':<14} mend: {finding.remedy}")
    _print_extras()
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _print_extras() -> None:
    """A line for each extra: installed, or what is missing, what it is for and what brings it. None is a failure."""
    print_out("Optional parts:")
    for name, extra in EXTRAS.items():
        if missing := absent(name):
            print_out(f"-    {name:<14} not installed: {', '.join(missing)} -> {extra.purpose}")
            print_out(f"     {'':<14} {install_line(name)}")
        else:
            STDOUT.print(f"[green]ok  [/] {name:<14} {extra.purpose}", highlight=False, soft_wrap=True)


def _finding(subject: str, check: Callable[[], str], remedy: str) -> Finding:
    """Run one check; any error is its finding."""
    try:
        return Finding(subject, True, check())
    except Exception as error:
        return Finding(subject, False, str(error).splitlines()[0] if str(error) else type(error).__name__, remedy)


def _python() -> str:
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        raise MertonError(f"Python {sys.version.split()[0]}")
    return f"Python {sys.version.split()[0]}"


def _ros() -> str:
    """In a process of its own: rcl ends the process if the requested middleware is not installed."""
    code = "import rclpy; rclpy.init(); rclpy.create_node('merton_doctor'); rclpy.shutdown()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environment())
    if done.returncode:
        raise MertonError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    where = "wheels" if os.environ.get("AMENT_PREFIX_PATH", "") in ("", sys.prefix) else "sourced installation"
    return f"rclpy from {where}"


def _interfaces() -> str:
    importlib.import_module("merton_interfaces.msg")
    return "merton_interfaces built"


def _nodes() -> str:
    graph = load_graph("sim")
    for node in graph.nodes:
        find_executable(node.package, node.executable)
    return f"{len(graph.nodes)} nodes installed; graphs: {', '.join(graph_names())}"


def _resources() -> str:
    return f"robot description at {resource('merton_description', 'urdf/cell.urdf.xacro')}"


def _libraries() -> str:
    for library in SYSTEM_PACKAGES:
        ctypes.CDLL(library)
    return f"{', '.join(library.partition('.')[0] for library in SYSTEM_PACKAGES)} load"


def _simulator() -> str:
    """In a process of its own: a broken OpenGL driver may end the process."""
    code = (
        "from merton.simulation.cell import SimulatedCell; from merton.simulation.cameras import SceneCameras; "
        "c = SimulatedCell(); c.reset('reach', 0); v = SceneCameras(424, 240).render('reach', 0, c.qpos, 'top'); "
        "from OpenGL.GL import GL_RENDERER, glGetString; "
        "print(v.color.std() > 5, (glGetString(GL_RENDERER) or b'an unnamed renderer').decode())"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    if done.returncode or "True" not in done.stdout:
        raise MertonError((done.stderr.strip().splitlines() or ["the picture is blank"])[-1])
    return f"a scene was simulated, and rendered by {done.stdout.split(maxsplit=1)[-1].strip()}"


def _gpu() -> str:
    """GPUs that models may use. None is no failure: only large models want one."""
    said = "no NVIDIA GPU (nvidia-smi is not installed)"
    if program := shutil.which("nvidia-smi"):
        asked = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
        done = subprocess.run(asked, check=False, capture_output=True, text=True, timeout=30)
        said = "no NVIDIA GPU (nvidia-smi names none)" if done.returncode else "; ".join(done.stdout.splitlines())
    if absent("models"):
        return f"{said}; torch is not installed"
    code = "import torch; print(torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"{said}; torch cannot be imported: {reason}"
    return f"{said}; torch {'uses CUDA' if 'True' in done.stdout else 'computes on the CPU'}"


def _domain() -> str:
    domain, holder = claim_domain()
    holder.close()
    return f"ROS domain {domain} is free"


def _shared_memory() -> str:
    free = shutil.disk_usage("/dev/shm").free
    if free < 128 * 2**20:
        raise MertonError(f"/dev/shm has {free // 2**20} MB free; nine nodes want 128")
    held = orphaned_ports(Path("/dev/shm"))
    note = f"; Fast DDS reports 'Failed init_port' for {held} ports and takes others" if held else ""
    return f"/dev/shm has {free // 2**20} MB free{note}"


def orphaned_ports(shared: Path) -> int:
    """The number of Fast DDS's ports whose memory was removed while the lock is there, held by a process or left."""
    return sum(not lock.with_name(lock.name[:-3]).exists() for lock in shared.glob("fastrtps_port*_el"))


CHECKS: list[tuple[str, Callable[[], str], str]] = [
    ("Python", _python, "use Python 3.10 to 3.13: make setup PYTHON=/usr/bin/python3.12"),
    ("ROS 2", _ros, "run `make setup`, or source /opt/ros/jazzy/setup.bash; unset RMW_IMPLEMENTATION"),
    ("interfaces", _interfaces, "run `make setup`, or `colcon build` and source install/setup.bash"),
    ("nodes", _nodes, "run `make setup`, or `colcon build` and source install/setup.bash"),
    ("description", _resources, "run `make setup`, or `colcon build` and source install/setup.bash"),
    ("libraries", _libraries, "sudo apt-get install libgomp1 libgl1 libegl1 libegl-mesa0 libgl1-mesa-dri"),
    ("simulator", _simulator, "sudo apt-get install libegl-mesa0 libgl1-mesa-dri; MUJOCO_GL=osmesa needs libosmesa6"),
    ("GPU", _gpu, ""),
    ("ports", _domain, "end other Mertons of this machine"),
    ("shared memory", _shared_memory, "in a container: docker run --shm-size=512m"),
]
"""Subject, check and remedy, in the order in which they matter on a new machine; merton_studies adds its own."""
