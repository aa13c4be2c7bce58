"""The plan of docs/architecture.md, read from the sources: what may import what, what is public, how long a file is."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("test_imports.py")  # one process reads the sources
ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "merton" / "merton"
NODES = ROOT / "src" / "merton_nodes" / "merton_nodes"

BANDS = {
    "foundations": ("errors", "registry", "seeding", "files", "config", "processes", "cluster", "hosts", "web"),
    "language": ("world", "results", "pages"),
    "services": ("graph", "models", "recording", "rating"),
    "stages": ("cognition", "decision", "execution", "simulation", "perception", "calibration"),
    "compositions": (
        "experiment",
        "twins",
        "leaderboard",
        "study",
        "annotate",
        "iqa",
        "curation",
        "harness",
        "people",
        "papers",
        "release",
        "monitor",
    ),
    "door": ("cli",),
}
"""The wings of the library from the ground up. A wing imports only wings that stand before it in this list, so that no
arrow runs up and no circle can arise."""
ORDER = [wing for wings in BANDS.values() for wing in wings]

NODE_FOLDERS = ("ros", "recording", "arm", "cell", "cameras", "models", "experiment", "monitor")
"""The folders of the nodes; `ros` is what all of them share, and knows none of them."""

STAGES = ("perception", "cognition", "decision", "execution")
ACTION = "merton.world.action"
FORMULAS = {
    "study": ("merton.cognition.score", "merton.cognition.text", "merton.decision.score", ACTION),
    "results": (ACTION,),
}
"""The definitions of scores, and the form of an action, know no robot and no model, so these wings may use them."""
DISTORTIONS = "merton.perception.distortion"
"""Names and families of the distortions, by which the site groups test cases."""

ADAPTERS_ONLY = {  # package: the wings that may import it
    "mujoco": ("simulation",),
    "pinocchio": ("execution",),
    "coal": ("execution",),
    "torch": ("perception", "cognition", "decision", "curation"),
    "sentence_transformers": ("curation",),
    "sklearn": ("curation",),
    "torchvision": (),
    "brisque": (),  # only its numbers are read
    "pyiqa": ("perception",),
    "transformers": ("cognition", "decision", "curation"),
    "lerobot": ("decision",),
    "rtde_control": ("execution",),
    "rtde_receive": ("execution",),
    "dashboard_client": ("execution",),
    "pyrealsense2": ("perception",),
    "ray": ("experiment", "annotate", "curation"),
    "rerun": ("monitor",),
    "psycopg": ("results",),
    "httpx2": (),  # merton.models.remote imports it when a server is asked
    "openai": (),
    "websockets": ("models",),
    "msgpack": ("models",),
}

LONGEST_FILE = 400
LONGEST_NODE = 250
LONGEST_FUNCTION = 60
"""Lines, a function's without its docstring. A file or function beyond is two things; LONGER says why one may be."""
LONGER = {
    "models/serving.py": "one file, because it is copied whole into foreign environments",
}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> frozenset[str]:
    """Every module and name a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide what is imported"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def files(folder: Path) -> list[Path]:
    """All Python files, at least one."""
    found = sorted(folder.rglob("*.py"))
    assert found, f"no sources in {folder}"
    return found


def name(file: Path) -> str:
    """A file's path below the package that holds it."""
    return str(file.relative_to(LIBRARY if file.is_relative_to(LIBRARY) else NODES))


def wing(file: Path) -> str:
    """The wing of the library a file belongs to: a folder, or a module at the top."""
    return file.relative_to(LIBRARY).with_suffix("").parts[0]


def test_every_wing_has_its_place() -> None:
    there = {wing(file) for file in files(LIBRARY)} - {"__init__", "__main__"}
    assert there == set(ORDER)
    assert {folder.name for folder in NODES.iterdir() if (folder / "__init__.py").exists()} == set(NODE_FOLDERS)


@pytest.mark.parametrize("file", files(LIBRARY), ids=name)
def test_no_arrow_runs_up(file: Path) -> None:
    own = wing(file)
    if own in ("__init__", "__main__"):
        return
    before = set(ORDER[: ORDER.index(own) + 1])
    used = {module.split(".")[1] for module in imports(file) if module.startswith("merton.")} - {"__version__"}
    assert used <= before, f"{name(file)} imports {sorted(used - before)}, which stand above {own}"


@pytest.mark.parametrize("file", files(LIBRARY), ids=name)
def test_the_library_knows_no_ros(file: Path) -> None:
    for module in imports(file):
        top = module.split(".")[0]
        assert top not in ("rclpy", "launch", "launch_ros", "merton_nodes", "merton_interfaces")
        assert not top.endswith("_msgs")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_knows_no_other_stage(stage: str) -> None:
    others = tuple(f"merton.{other}" for other in STAGES if other != stage)
    for file in files(LIBRARY / stage):
        wrong = [module for module in imports(file) if module.startswith(others)]
        assert not wrong, f"{name(file)} imports {wrong}"


@pytest.mark.parametrize("part", ["rating", "leaderboard", "study", "results"])
def test_ratings_know_no_robot_and_no_model(part: str) -> None:
    allowed = {*BANDS["foundations"], "leaderboard", "pages", "rating", "results", "study", "__version__"}
    for file in files(LIBRARY / part):
        for module in imports(file):
            if file.parent.name == "site" and module.startswith(DISTORTIONS):
                continue
            if module.startswith("merton.") and not module.startswith(FORMULAS.get(part, ())):
                assert module.split(".")[1] in allowed, f"{name(file)} imports {module}"


def test_reading_an_experiment_compiles_nothing() -> None:
    """Five processes of a graph, and every command, read experiments: they do not wait for compilers and simulators."""
    heavy = {"mujoco", "numba", "scipy", "torch"}
    code = f"import sys, merton.experiment.run; print(*sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []


def test_the_command_line_stands_above_all() -> None:
    for file in (*files(LIBRARY), *files(NODES)):
        if not file.is_relative_to(LIBRARY / "cli") and file.name != "__main__.py":
            assert not [module for module in imports(file) if module.startswith("merton.cli")], name(file)


@pytest.mark.parametrize(("module", "homes"), ADAPTERS_ONLY.items())
def test_heavy_packages_stay_in_their_adapter(module: str, homes: tuple[str, ...]) -> None:
    for file in files(LIBRARY):
        if any(found.split(".")[0] == module for found in imports(file)):
            assert wing(file) in homes, f"{name(file)} imports {module}"


@pytest.mark.parametrize("file", files(NODES), ids=name)
def test_a_node_holds_no_algorithm(file: Path) -> None:
    """Nodes import none of the packages that algorithms are made of."""
    found = {module.split(".")[0] for module in imports(file)}
    assert not found & {"scipy", "cv2", "mujoco", "numba", "sqlalchemy"}


@pytest.mark.parametrize("file", files(NODES / "ros"), ids=name)
def test_the_shared_part_of_the_nodes_knows_no_node(file: Path) -> None:
    assert not [
        module for module in imports(file) if module.startswith(tuple(f"merton_nodes.{f}" for f in NODE_FOLDERS[1:]))
    ]


PACKAGES = [file for file in (*files(LIBRARY), *files(NODES)) if file.name == "__init__.py"]


def dotted(file: Path) -> str:
    """The name under which a package's `__init__` or a module is imported."""
    base = (LIBRARY if file.is_relative_to(LIBRARY) else NODES).parent
    parts = file.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exported(package: Path) -> list[str]:
    """The `__all__` of a package's `__init__`."""
    for node in tree(package).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_a_package_says_what_is_public(package: Path) -> None:
    """`__all__` names the modules and names that other packages may import; all else is the package's own."""
    assert ast.get_docstring(tree(package)), "a package says in a sentence what it is"
    public = exported(package)
    own = dotted(package)
    inside = {path.stem for path in package.parent.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(public) <= inside | {module.rsplit(".", 1)[1] for module in imports(package) if "." in module} | {
        "__version__"
    }
    for file in (*files(LIBRARY), *files(NODES)):
        if file.is_relative_to(package.parent):
            continue
        for module in imports(file):
            if module.startswith(f"{own}."):
                used = module[len(own) + 1 :].split(".")[0]
                assert used in public, f"{name(file)} imports {used} of {own}, which is not in its __all__"


@pytest.mark.parametrize("file", [*files(LIBRARY), *files(NODES)], ids=name)
def test_files_and_functions_are_short(file: Path) -> None:
    length = len(file.read_text(encoding="utf-8").splitlines())
    if name(file) in LONGER:
        return
    assert length <= (LONGEST_NODE if file.name.endswith("_node.py") else LONGEST_FILE)
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            lines = (node.end_lineno or 0) - first.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{node.name} has {lines} lines without its docstring"


def test_the_picture_shows_every_wing() -> None:
    picture = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for place in (*ORDER, *(f"merton_nodes.{folder}" for folder in NODE_FOLDERS)):
        assert f">{place.removeprefix('merton_nodes.')}<" in picture, f"{place} is not in the picture"
        assert f"`{place.removeprefix('merton_nodes.')}`" in page, f"{place} is not in docs/architecture.md"
