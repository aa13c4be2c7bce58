"""The distributions: whole, the same bytes again, with ranges that the lock fulfils, of one version everywhere."""

from __future__ import annotations

import ast
import configparser
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from set_up_alone import IN_CMEEL, closure, modules_beyond

import merton
from merton.errors import STUDIES_EXTRAS
from sources import PROJECTS, project

LIBRARY = Path(merton.__file__).parent
ROOT = LIBRARY.parents[2]
STUDIES = ROOT / "src/merton_studies"
LOCK = ROOT / "requirements/lock.txt"
BYTE_CODE = (".pyc", ".nbi", ".nbc")
NOT_LOCKED = {"lerobot"}
"""Extras that want another torch than the lock's: each needs an environment of its own."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheel, built twice in processes of different hash seeds: from the checkout, and from its source archive."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: make setup")
    folder = tmp_path_factory.mktemp("dist")
    built(ROOT, folder, "wheel", "1", "hatchling.build")
    return [next(folder.glob("*.whl")), wheel_again(ROOT, tmp_path_factory.mktemp("again"), "hatchling.build")]


@pytest.fixture(scope="module")
def studies_wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """As `wheels`, of merton-studies; its backend writes beside the sources, so they are a copy."""
    pytest.importorskip("setuptools", reason="setuptools is not installed: make setup")
    folder = tmp_path_factory.mktemp("dist")
    copy = copy_with_byte_code(STUDIES, folder)
    built(copy, folder, "wheel", "1", "setuptools.build_meta")
    again = wheel_again(copy, tmp_path_factory.mktemp("again"), "setuptools.build_meta")
    return [next(folder.glob("*.whl")), again]


def copy_with_byte_code(package: Path, root: Path) -> Path:
    """A copy of a folder of src below another root, with byte code of Python and numba in each of its folders."""
    copy = root / "src" / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    library = copy / package.name
    for folder in [library, *(path for path in library.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").mkdir()
        for suffix in BYTE_CODE:
            (folder / "__pycache__" / f"module{suffix}").touch()
    return copy


def wheel_again(project: Path, copy: Path, backend: str) -> Path:
    """The wheel of the source archive of a project, both built below the folder `copy`."""
    built(project, copy, "sdist", "2", backend)
    shutil.unpack_archive(next(copy.glob("*.tar.gz")), copy)
    built(next(copy.glob("merton*/")), copy, "wheel", "2", backend)
    return next(copy.glob("*.whl"))


def built(project: Path, folder: Path, kind: str, seed: str, backend: str) -> None:
    """Build the wheel or the sdist of a project."""
    code = f"from {backend} import build_{kind}; build_{kind}({str(folder)!r})"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", code], cwd=project, env=environment, check=True, capture_output=True)


def kept(folder: Path) -> set[str]:
    """The files below a folder of sources that belong to them, relative to it: all but byte code."""
    return {name for name in files(folder) if "__pycache__" not in name and not name.endswith(BYTE_CODE)}


def files(folder: Path) -> set[str]:
    """The files below a folder, relative to it."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def requirements(file: Path) -> Iterator[Requirement]:
    """Every requirement of a pyproject.toml, of all extras and groups, but of those in NOT_LOCKED."""
    content = project(file)
    extras = {**content["optional-dependencies"], **content["groups"]}
    lists = [content["dependencies"], *(lines for name, lines in extras.items() if name not in NOT_LOCKED)]
    yield from (Requirement(line) for lines in lists for line in lines if isinstance(line, str))


@cache
def pins() -> dict[str, list[Requirement]]:
    """Name of a package to its lines in the lock: one, or several for different releases of Python."""
    lines = (line.partition("#")[0].strip() for line in LOCK.read_text(encoding="utf-8").splitlines())
    result: dict[str, list[Requirement]] = {}
    for requirement in (Requirement(line) for line in lines if line):
        result.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return result


@pytest.mark.parametrize("package", ["wheels", "studies_wheels"])
def test_a_wheel_has_the_same_bytes_again(package: str, request: pytest.FixtureRequest) -> None:
    """From the checkout, and from the source archive."""
    first, second = (hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in request.getfixturevalue(package))
    assert first == second


def test_a_wheel_has_every_file_of_the_library_and_what_it_reads(wheels: list[Path]) -> None:
    names = {name for name in zipfile.ZipFile(wheels[0]).namelist() if name.startswith("merton/")}
    shared = {f"merton/share/{top}/{name}" for top in ("config", "urdf") for name in kept(ROOT / top)}
    assert names == {f"merton/{name}" for name in kept(LIBRARY)} | shared


def test_the_wheel_of_the_studies_has_every_file_of_them(studies_wheels: list[Path]) -> None:
    """pip and colcon build it by one file."""
    archive = zipfile.ZipFile(studies_wheels[0])
    names = {name for name in archive.namelist() if name.startswith("merton_studies/")}
    assert names == {f"merton_studies/{name}" for name in kept(STUDIES / "merton_studies")}
    assert "merton_studies/py.typed" in names
    (licence,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
    assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    requires = message_from_bytes(archive.read(f"merton_studies-{merton.__version__}.dist-info/METADATA"))
    assert f"merton[dataset]=={merton.__version__}" in (requires.get_all("Requires-Dist") or [])


def test_colcon_installs_the_same_files_and_the_same_command(wheels: list[Path], tmp_path: Path) -> None:
    """By src/merton/setup.cfg and setup.py."""
    pytest.importorskip("setuptools", reason="setuptools is not installed: make setup")
    if sys.version_info >= (3, 11):  # colcon's Python of Jazzy is 3.12
        shutil.copyfile(PROJECTS[0], tmp_path / "pyproject.toml")  # setup.py reads it
        copy = copy_with_byte_code(LIBRARY.parent, tmp_path)
        command = [sys.executable, "setup.py", "-q", "build", "-b", str(tmp_path), "--build-lib", str(tmp_path / "lib")]
        command += ["egg_info", "--egg-base", str(tmp_path)]
        subprocess.run(command, cwd=copy, check=True, capture_output=True)
        assert files(tmp_path / "lib/merton") == kept(LIBRARY)
        extras = (tmp_path / "merton.egg-info/requires.txt").read_text(encoding="utf-8")
        assert set(re.findall(r"^\[([\w-]+)[:\]]", extras, re.MULTILINE)) == set(
            project(PROJECTS[0])["optional-dependencies"]
        )
    settings = configparser.ConfigParser()
    settings.read(LIBRARY.parent / "setup.cfg", encoding="utf-8")
    installed = zipfile.ZipFile(wheels[0]).read(f"merton-{merton.__version__}.dist-info/entry_points.txt").decode()
    assert installed.split() == ["[console_scripts]", *settings["options.entry_points"]["console_scripts"].split()]


@pytest.mark.parametrize(("package", "sources"), [("merton_nodes", "src/merton_nodes"), ("merton_bringup", "launch")])
def test_a_ros_package_names_every_ros_package_that_it_imports(package: str, sources: str) -> None:
    """At the top of a module: others, such as MoveIt's, are imported where a lab has them."""
    imported = {
        name.partition(".")[0]
        for file in (ROOT / sources).rglob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    manifest = (ROOT / "src" / package / "package.xml").read_text(encoding="utf-8")
    of_pip = {"numpy", "rich", "ruamel", "setuptools"}
    assert {"launch", "xacro", "merton"} <= imported
    assert imported - sys.stdlib_module_names - of_pip - {package} <= set(
        re.findall("<exec_depend>(.*)</exec_depend>", manifest)
    )


def about(wheel: Path) -> Message:
    """The metadata of a wheel."""
    return message_from_bytes(zipfile.ZipFile(wheel).read(f"merton-{merton.__version__}.dist-info/METADATA"))


def test_a_wheel_asks_for_ranges(wheels: list[Path]) -> None:
    """An exact version would replace the one of a framework that is installed beside Merton."""
    asked = [Requirement(line) for line in about(wheels[0]).get_all("Requires-Dist") or []]
    assert {each.name for each in asked} >= {"numpy", "opencv-python-headless", "mujoco", "pyarrow"}
    for requirement in asked:
        assert [each.operator for each in requirement.specifier] == [">="], f"{requirement}: only a lowest version"


def test_one_version_stands_everywhere() -> None:
    versions = {
        str(file.relative_to(ROOT)): re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
        for pattern, files in (
            (r"<version>(.+)</version>", (ROOT / "src").glob("*/package.xml")),
            (r"^version = ([\d.]+)$", [ROOT / "src/merton_nodes/setup.cfg"]),
            (r"^version: (.+)$", [ROOT / "CITATION.cff"]),
            (r'^version = "(.+)"$|^dependencies = \["merton\[dataset\]==(.+)"\]', [STUDIES / "pyproject.toml"]),
        )
        for file in files
    }
    assert len(versions) >= 8
    studies = versions.pop("src/merton_studies/pyproject.toml")
    assert [first or second for first, second in studies] == [merton.__version__] * 2
    assert {name: found for name, found in versions.items() if found != [merton.__version__]} == {}
    pages = "".join(file.read_text(encoding="utf-8") for file in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert set(re.findall(r"'merton(?:-studies)?\[[\w,]+\]==([\d.]+)'", pages)) == {merton.__version__}
    assert not re.findall(r"pip install '?merton['\[](?!.*==)", pages), "the index has another project of that name"


def test_the_extras_of_the_studies_are_those_that_the_library_knows() -> None:
    assert set(STUDIES_EXTRAS) == project(PROJECTS[1])["optional-dependencies"].keys()


@pytest.mark.parametrize("file", PROJECTS, ids=["merton", "merton-studies"])
def test_the_lock_pins_what_the_ranges_ask_for(file: Path) -> None:
    checked = 0
    for requirement in requirements(file):
        if requirement.name == "merton":
            continue
        for pin in pins()[canonicalize_name(requirement.name)]:
            (exact,) = pin.specifier
            assert requirement.specifier.contains(exact.version), f"{pin} is not in {requirement}: make lock"
            checked += 1
    assert checked >= 7


def test_the_lock_is_exact_and_names_no_host() -> None:
    assert len(pins()) > 200, "indirect packages too"
    assert {
        name for name, lines in pins().items() for line in lines if [s.operator for s in line.specifier] != ["=="]
    } == set()
    assert "://" not in LOCK.read_text(encoding="utf-8")
    assert {"llvmlite", "markupsafe", "cmeel-boost", "pydantic-core"} <= pins().keys()


def test_every_extra_is_locked_or_needs_an_environment_of_its_own() -> None:
    (line,) = re.findall(r"^LOCKED := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    extras = {name for file in PROJECTS for name in project(file)["optional-dependencies"]}
    assert set(line.split()) == extras - NOT_LOCKED


def calls() -> Iterator[tuple[Path, str, str | None]]:
    """File, extra, and module of each `require`, `missing` and `needing` with a written extra in both packages."""
    for file in [*LIBRARY.rglob("*.py"), *STUDIES.rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.With):
                first = node.items[0].context_expr
                if isinstance(first, ast.Call) and getattr(first.func, "id", "") == "needing":
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Import):
                            yield from ((file, text(first.args[0]), alias.name) for alias in inner.names)
                        elif isinstance(inner, ast.ImportFrom):
                            yield file, text(first.args[0]), inner.module
            elif (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") in ("require", "missing")
                and isinstance(node.args[1], ast.Constant)
            ):
                module = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                yield file, text(node.args[1]), module


def text(node: ast.expr) -> str:
    """The text that a constant is."""
    assert isinstance(node, ast.Constant)
    return str(node.value)


def test_every_extra_that_is_named_exists_and_brings_the_module() -> None:
    """Modules of packages that are installed here; the others' extra must exist at least."""
    extras = {name: lines for file in PROJECTS for name, lines in project(file)["optional-dependencies"].items()}
    homes = metadata.packages_distributions()
    core = closure(*project(PROJECTS[0])["dependencies"])
    checked = set()
    for file, extra, module in calls():
        assert extra in extras, f"{file}: no extra is named {extra!r}"
        top = (module or "").partition(".")[0]
        if top in homes and not top.startswith("merton"):
            names = {canonicalize_name(name) for name in homes[top]}
            assert names & (closure(*extras[extra]) | core), f"{file}: {extra} does not bring {module}"
            checked.add(extra)
    assert {"sim", "serve"} <= checked


WITHOUT_EXTRAS = """
import importlib, pkgutil, sys

hidden = set(sys.argv[2:])

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
package = importlib.import_module(sys.argv[1])
from merton.errors import MissingDependencyError
count = 0
for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
    hosted = module.name.startswith("merton.worlds.hosted.") and module.name.endswith(("_world", "_room", "_state"))
    if module.name.endswith(".__main__") or hosted:  # imports its simulator in an environment of its own
        continue
    count += 1
    try:
        importlib.import_module(module.name)
    except MissingDependencyError:
        pass
    except Exception as error:
        print(f"{module.name}: {type(error).__name__}: {error}")
print(f"{count} modules")
"""


def test_without_extras_every_module_is_imported_or_says_what_it_needs() -> None:
    """Only what the dependencies of `merton` bring can be imported: the installation of `pip install ./merton`."""
    brought = closure(*project(PROJECTS[0])["dependencies"])
    hidden = IN_CMEEL | modules_beyond(brought)
    assert {"mujoco", "fastapi"} <= hidden
    command = [sys.executable, "-c", WITHOUT_EXTRAS, "merton", *sorted(hidden)]
    *offences, count = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert offences == []
    assert int(count.split()[0]) > 300


def test_a_script_beside_a_checkout_finds_the_library(tmp_path: Path) -> None:
    """Its folder comes first on the path, and a checkout in it is a folder `merton` too."""
    (tmp_path / "merton").mkdir()
    (tmp_path / "merton" / "config").mkdir()
    script = tmp_path / "script.py"
    script.write_text("from merton.config import Model; print(Model.__name__)", encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "Model\n"


@pytest.mark.parametrize("absent", ["mujoco", "pinocchio", "coal", "xacro"])
def test_a_trial_without_the_simulator_names_the_extra(absent: str) -> None:
    code = f"import sys; sys.modules[{absent!r}] = None; import merton.experiment.local"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert re.search(rf"needs {absent}: install it with \S+ -m pip install .*'merton\[sim\]==[\d.]+'$", last), last
