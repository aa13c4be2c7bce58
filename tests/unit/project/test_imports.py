"""The plan of docs/reference/architecture.md, read from the sources: imports, public names, lengths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from merton.cli.tree import STUDIES as COMMANDS_OF_STUDIES
from sources import LIBRARY, NODES, PACKAGES, ROOT, STUDIES, content, dotted, files, imports, tree

BANDS = {
    "foundations": (
        "errors",
        "extras",
        "registry",
        "seeding",
        "statistics",
        "files",
        "config",
        "progress",
        "processes",
        "pool",
        "cluster",
        "hosts",
        "web",
    ),
    "language": ("world", "results", "pages"),
    "services": ("graph", "models", "worlds", "recording", "rating"),
    "stages": ("cognition", "decision", "execution", "simulation", "perception", "calibration"),
    "compositions": ("experiment", "leaderboard", "study", "episodes", "proxy", "gym", "monitor"),
    "door": ("cli",),
}
"""The wings of the library from the ground up. A wing imports only wings that stand before it in this list, so that no
arrow runs up and no circle can arise."""
ORDER = [wing for wings in BANDS.values() for wing in wings]
STUDY_ORDER = [
    "opinions",
    "lerobot",
    "twins",
    "annotate",
    "iqa",
    "curation",
    "harness",
    "people",
    "papers",
    "release",
    "cli",
]
"""The wings of merton_studies, which stands on the whole library, in the same way."""
ORDERS = {LIBRARY: ORDER, STUDIES: STUDY_ORDER}

NODE_FOLDERS = ("ros", "recording", "arm", "cell", "cameras", "models", "experiment", "monitor")
"""The folders of the nodes; `ros` is what all of them share, and knows none of them."""

STAGES = ("perception", "cognition", "decision", "execution")
ACTION = "merton.world.action"
SPREAD = "merton.decision.spread"
SPLITS = "merton.world.splits"
FORMULAS = {
    "study": (
        "merton.cognition.score",
        "merton.cognition.slots",
        "merton.cognition.unanswered",
        "merton.cognition.text",
        "merton.decision.score",
        SPREAD,
        ACTION,
    ),
    "results": (ACTION, SPLITS),
}
"""The definitions of scores, the form of an action and the names of splits know no robot and no model, so these wings
may use them."""
DISTORTIONS = "merton.perception.distortion"
"""Names and families of the distortions, by which the site groups test cases."""

ADAPTERS_ONLY = {  # package: the wings that may import it
    "mujoco": ("simulation",),
    "pinocchio": ("execution",),
    "coal": ("execution",),
    "torch": ("perception", "cognition", "decision", "curation"),
    "sentence_transformers": ("curation",),
    "sklearn": ("curation",),
    "torchvision": ("perception",),  # of pyiqa_trainer.py alone, in the environment where pyiqa is
    "brisque": (),  # only its numbers are read
    "pyiqa": ("perception",),
    "transformers": ("cognition", "decision", "curation"),
    "lerobot": ("decision",),
    "gymnasium": ("gym",),
    "rtde_control": ("execution",),
    "rtde_receive": ("execution",),
    "dashboard_client": ("execution",),
    "pyrealsense2": ("perception",),
    "ray": ("cluster",),
    "rerun": ("monitor",),
    "psycopg": ("results",),
    "pandas": ("study",),
    "wandb": ("study",),
    "mlflow": ("study",),
    "tensorboardX": ("study",),
    "httpx2": (),  # merton.models.remote imports it when a server is asked
    "openai": (),
    "websockets": ("models",),
    "msgpack": ("models",),
}

HOSTED = LIBRARY / "worlds" / "hosted"
"""Files of foreign environments: each imports its simulator, and nothing of Merton."""

LONGEST_FILE = 400
LONGEST_NODE = 250
LONGEST_FUNCTION = 60
"""Lines, a function's without its docstring. A file or function beyond is two things; LONGER says why one may be."""
OF_TABLES = {  # to the one file that uses it
    "csv.reader": "results/tables.py",
    "csv.DictReader": "opinions/published.py",
    "csv.writer": "results/csv_writer.py",
    "csv.DictWriter": "",
    "parquet.ParquetWriter": "results/parquet.py",
    "parquet.write_table": "results/parquet.py",
}
LONGER = {
    "models/serving.py": "one file, because it is copied whole into foreign environments",
}


def name(file: Path) -> str:
    """A file's path below the package that holds it."""
    return str(file.relative_to(package_of(file)))


def package_of(file: Path) -> Path:
    """The folder of the package that a file belongs to."""
    return next(package for package in PACKAGES if file.is_relative_to(package))


def wing(file: Path) -> str:
    """The wing of its package a file belongs to: a folder, or a module at the top."""
    return file.relative_to(package_of(file)).with_suffix("").parts[0]


def test_every_wing_has_its_place() -> None:
    for package, order in ORDERS.items():
        assert {wing(file) for file in files(package)} - {"__init__", "__main__"} == set(order)
    assert {folder.name for folder in NODES.iterdir() if (folder / "__init__.py").exists()} == set(NODE_FOLDERS)


def every_source() -> Iterator[Path]:
    """Each Python file of the three packages."""
    return (file for package in PACKAGES for file in files(package))


def agree(offences: Iterable[str]) -> None:
    """Fails with all offences against a rule, a line each."""
    lines = list(offences)
    assert not lines, "\n" + "\n".join(lines)


def imported(places: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with each module or name that it imports."""
    return ((file, module) for file in places for module in sorted(imports(file)))


def offence(file: Path, module: str) -> str:
    """The line of an import that a rule forbids."""
    return f"{name(file)} imports {module}"


def top(module: str) -> str:
    """The package that a module is of."""
    return module.partition(".")[0]


def wing_of(module: str, package: str = "merton") -> str:
    """The wing of a module of the package; empty for another package."""
    return [*module.split("."), ""][1] if top(module) == package else ""


@pytest.mark.parametrize("package", ORDERS, ids=lambda package: package.name)
def test_no_arrow_runs_up(package: Path) -> None:
    order = ORDERS[package]
    below = {own: {*order[: order.index(own) + 1], "__version__", ""} for own in order}
    inside = (file for file in files(package) if wing(file) in below)
    agree(
        offence(file, module)
        for file, module in imported(inside)
        if wing_of(module, package.name) not in below[wing(file)]
    )


def test_nothing_of_the_loop_knows_the_studies() -> None:
    loop = (*files(LIBRARY), *files(NODES), *files(ROOT / "tests/unit"), *files(ROOT / "tests/nodes"))
    agree(
        f"{file.relative_to(ROOT)} imports {module}" for file, module in imported(loop) if top(module) == STUDIES.name
    )


def test_no_test_of_the_loop_calls_a_command_of_the_studies() -> None:
    """Without them, and so in `make lowest`, such a test fails; a list of words that a command is called with tells."""
    for file in (*files(ROOT / "tests/unit"), *files(ROOT / "tests/nodes")):
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "invoke" and len(node.args) > 1:
                words = [getattr(word, "value", None) for word in getattr(node.args[1], "elts", ())]
                calls = {" ".join(map(str, words[:count])) for count in (1, 2)} & {*COMMANDS_OF_STUDIES}
                assert not calls, f"{file.relative_to(ROOT)}: {calls}"


def circle(arrows: Mapping[str, Iterable[str]]) -> str:
    """One circle of a graph, node by node; empty if there is none."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def test_no_circle_of_files() -> None:
    """An import inside a function, or for types alone, counts too: it hides a circle and leaves the two files one.

    `merton` itself is a door: it has the version, which files read, and `load`, which imports what it opens.
    """
    every = {dotted(file): file for package in PACKAGES for file in files(package)}
    door = LIBRARY / "__init__.py"

    def needed(file: Path) -> set[str]:
        """The files that a file imports: a package's `__init__` only if a name is taken from it that is no module."""
        from_inits = {module.rpartition(".")[0] for module in imports(file) if module not in every}
        if file == door:
            return set()
        return {
            module
            for module in imports(file)
            if module in every and (every[module].name != "__init__.py" or module in from_inits)
        }

    assert circle({module: needed(file) for module, file in every.items()}) == ""


def test_no_circle_of_scripts() -> None:
    """Among the modules of the pages. A name put together at run time stands for all scripts that it may name."""

    def needed(script: Path) -> set[str]:
        targets = re.findall(r"""(?:from|import\() ?["`]\.?/(?:page/)?([^"`]+)""", script.read_text(encoding="utf-8"))
        matches = {target: list(script.parent.glob(re.sub(r"\$\{.*?\}", "*", target))) for target in targets}
        assert all(matches.values()), f"{script} imports a script that is not there: {matches}"
        return {str(other) for others in matches.values() for other in others}

    scripts = {str(script): needed(script) for script in (ROOT / "src").rglob("*.js")}
    assert sum(map(len, scripts.values())) > 10
    assert circle(scripts) == ""


def test_the_library_knows_no_ros() -> None:
    ros = ("rclpy", "launch", "launch_ros", "merton_nodes", "merton_interfaces")
    agree(
        offence(file, module)
        for file, module in imported((*files(LIBRARY), *files(STUDIES)))
        if top(module) in ros or top(module).endswith("_msgs")
    )


def test_a_stage_knows_no_other_stage() -> None:
    agree(
        offence(file, module)
        for stage in STAGES
        for file, module in imported(files(LIBRARY / stage))
        if wing_of(module) in {*STAGES} - {stage}
    )


def test_ratings_know_no_robot_and_no_model() -> None:
    allowed = {*BANDS["foundations"], "leaderboard", "pages", "rating", "results", "study", "__version__", ""}
    agree(
        offence(file, module)
        for part in ("rating", "leaderboard", "study", "results")
        for file, module in imported(files(LIBRARY / part))
        if wing_of(module) not in allowed
        and not module.startswith(FORMULAS.get(part, ()))
        and not (file.parent.name == "site" and module.startswith(DISTORTIONS))
    )


def test_reading_an_experiment_compiles_nothing() -> None:
    """Five processes of a graph, and every command, read experiments: they do not wait for compilers and simulators."""
    heavy = {"mujoco", "numba", "scipy", "torch"}
    code = f"import sys, merton.experiment.run; print(*sorted({heavy} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []


def test_the_command_line_stands_above_all() -> None:
    doors = [package / "cli" for package in ORDERS]
    outside = (file for file in every_source() if not any(file.is_relative_to(door) for door in doors))
    agree(
        offence(file, module)
        for file, module in imported(outside)
        if "cli" in (wing_of(module), wing_of(module, STUDIES.name)) and file.name != "__main__.py"
    )


def test_heavy_packages_stay_in_their_adapter() -> None:
    agree(
        offence(file, module)
        for file, module in imported((*files(LIBRARY), *files(STUDIES)))
        if not file.is_relative_to(HOSTED) and wing(file) not in ADAPTERS_ONLY.get(top(module), (wing(file),))
    )


def test_what_runs_in_a_foreign_environment_needs_nothing_of_this_one() -> None:
    """Only its neighbours in the folder, numpy and its simulator."""
    assert len(files(HOSTED)) > 3
    agree(
        offence(file, module)
        for file, module in imported(files(HOSTED))
        if top(module) in {"merton", "merton_studies", "merton_nodes", "pydantic", "cv2"}
        and not module.startswith("merton.worlds.hosted.")
    )


def test_tables_are_read_and_written_in_one_place() -> None:
    """A table's format is known to one file: CSV is safe from formulas and read back, Parquet is compressed alike.

    The numbers printed in papers are read by a reader of their own, since each of their digits counts.
    """
    assert {
        (source, name(file)) for file in every_source() for source in content(file).attributes if source in OF_TABLES
    } == {(source, home) for source, home in OF_TABLES.items() if home}
    agree(
        offence(file, module) for file, module in imported(every_source()) if module in {"pyarrow.parquet", *OF_TABLES}
    )


def test_a_node_holds_no_algorithm() -> None:
    """Nodes import none of the packages that algorithms are made of."""
    algorithms = ("scipy", "cv2", "mujoco", "numba", "sqlalchemy")
    agree(offence(file, module) for file, module in imported(files(NODES)) if top(module) in algorithms)


def test_the_shared_part_of_the_nodes_knows_no_node() -> None:
    nodes = tuple(f"merton_nodes.{folder}" for folder in NODE_FOLDERS[1:])
    agree(offence(file, module) for file, module in imported(files(NODES / "ros")) if module.startswith(nodes))


EVERY = [file for package in PACKAGES for file in files(package)]
INITS = [file for file in EVERY if file.name == "__init__.py"]


def exported(package: Path) -> list[str]:
    """The `__all__` of a package's `__init__`."""
    for node in tree(package).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def test_a_package_says_in_a_sentence_what_it_is() -> None:
    agree(name(package) for package in INITS if not ast.get_docstring(tree(package)))


def test_a_package_exports_what_it_has() -> None:
    for package in INITS:
        places = package.parent.iterdir()
        inside = {path.stem for path in places if path.suffix == ".py" or (path / "__init__.py").exists()}
        named = {module.rpartition(".")[2] for module in imports(package) if "." in module}
        defined = {node.name for node in tree(package).body if isinstance(node, ast.FunctionDef)}
        assert set(exported(package)) <= inside | named | defined | {"__version__"}, dotted(package)


def test_a_package_says_what_is_public() -> None:
    """`__all__` names the modules and names that other packages may import; all else is the package's own."""
    public = {dotted(package): (package.parent, exported(package)) for package in INITS}

    def is_private(file: Path, module: str) -> bool:
        """Whether a file outside a package around the module uses what the package keeps to itself."""
        parts = module.split(".")
        around = ((public.get(".".join(parts[:count])), parts[count]) for count in range(1, len(parts)))
        return any(one and not file.is_relative_to(one[0]) and used not in one[1] for one, used in around)

    agree(offence(file, module) for file, module in imported(EVERY) if is_private(file, module))


def too_long(file: Path) -> Iterator[str]:
    """A line if a file is too long, and one for each function that is."""
    length, limit = len(file.read_text(encoding="utf-8").splitlines()), LONGEST_FILE
    if file.name.endswith("_node.py"):
        limit = LONGEST_NODE
    if length > limit:
        yield f"{name(file)} has {length} lines, of at most {limit}"
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
            lines = (node.end_lineno or 0) - first.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{name(file)}: {node.name} has {lines} lines without its docstring"


def test_files_and_functions_are_short() -> None:
    every = (file for file in EVERY if name(file) not in LONGER)
    agree(line for file in every for line in too_long(file))


def test_the_picture_shows_every_wing() -> None:
    picture = (ROOT / "docs" / "images" / "house.svg").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "architecture.md").read_text(encoding="utf-8")
    for place in (*ORDER, *STUDY_ORDER, *(f"merton_nodes.{folder}" for folder in NODE_FOLDERS)):
        assert f">{place.removeprefix('merton_nodes.')}<" in picture, f"{place} is not in the picture"
        assert f"`{place.removeprefix('merton_nodes.')}`" in page, f"{place} is not in docs/reference/architecture.md"
