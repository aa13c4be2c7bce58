"""The import rules of docs/architecture.md, read from the sources."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
LIBRARY = SOURCES / "merton" / "merton"
STAGES = ("perception", "cognition", "decision", "execution")
# What a score is knows no robot and no model either, so the study may use it.
FORMULAS = ("merton.cognition.score", "merton.cognition.text", "merton.decision.score", "merton.world.action")
# Names and families of the distortions: how the site groups test cases.
DISTORTIONS = "merton.perception.distortion"
# module prefix: the only parts of the library that may import it
ADAPTERS_ONLY = {
    "mujoco": ("simulation",),
    "pinocchio": ("execution",),
    "coal": ("execution",),
    "torch": ("perception", "cognition", "decision"),
    "torchmetrics": ("perception",),
    "transformers": ("cognition", "decision"),
    "lerobot": ("decision",),
    "rtde_control": ("execution",),
    "rtde_receive": ("execution",),
    "dashboard_client": ("execution",),
    "pyrealsense2": ("perception",),
    "ray": ("annotate",),
    "psycopg": ("results",),
    "httpx2": (),  # merton.models.remote imports it when a server is asked
    "openai": (),
    "websockets": ("models",),
    "msgpack": ("models",),
}


@cache
def imports(file: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide what is imported"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def files(folder: Path) -> list[Path]:
    """All Python files, at least one."""
    found = sorted(folder.rglob("*.py"))
    assert found, f"no sources in {folder}"
    return found


@pytest.mark.parametrize("file", files(LIBRARY), ids=lambda f: str(f.relative_to(LIBRARY)))
def test_the_library_knows_no_ros(file: Path) -> None:
    for module in imports(file):
        top = module.split(".")[0]
        assert top not in ("rclpy", "launch", "launch_ros", "merton_nodes", "merton_interfaces")
        assert not top.endswith("_msgs")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_knows_no_other_stage(stage: str) -> None:
    others = [f"merton.{other}" for other in STAGES if other != stage]
    for file in files(LIBRARY / stage):
        wrong = [module for module in imports(file) for other in others if module.startswith(other)]
        assert not wrong, f"{file} imports {wrong}"


def test_what_composes_stages_is_known_to_commands_alone() -> None:
    """`experiment` and `annotate` put stages together; no stage and no vocabulary knows of either."""
    for composer, allowed in (("annotate", ("annotate", "cli")), ("experiment", ("experiment", "cli"))):
        for file in files(LIBRARY):
            if any(module.startswith(f"merton.{composer}") for module in imports(file)):
                assert file.relative_to(LIBRARY).parts[0] in allowed, f"{file} imports {composer}"


@pytest.mark.parametrize("part", ["rating", "leaderboard", "study", "results"])
def test_ratings_know_no_robot_and_no_model(part: str) -> None:
    allowed = ("config", "errors", "leaderboard", "rating", "processes", "registry", "results", "seeding", "study")
    allowed += ("console", "files", "hosts", "pages", "web")
    for file in files(LIBRARY / part):
        for module in imports(file):
            if file.parent.name == "site" and module.startswith(DISTORTIONS):
                continue
            if module.startswith("merton.") and not (part == "study" and module.startswith(FORMULAS)):
                assert module.split(".")[1] in allowed, f"{file} imports {module}"


@pytest.mark.parametrize(("module", "homes"), ADAPTERS_ONLY.items())
def test_heavy_packages_stay_in_their_adapter(module: str, homes: tuple[str, ...]) -> None:
    for file in files(LIBRARY):
        if any(found.split(".")[0] == module for found in imports(file)):
            assert file.relative_to(LIBRARY).parts[0] in homes, f"{file} imports {module}"


def test_a_node_holds_no_algorithm() -> None:
    """Thin: no node file is long, and none imports what algorithms are made of."""
    for file in files(SOURCES / "merton_nodes" / "merton_nodes"):
        found = {module.split(".")[0] for module in imports(file)}
        assert not found & {"scipy", "cv2", "mujoco", "numba", "sqlalchemy"}, file
