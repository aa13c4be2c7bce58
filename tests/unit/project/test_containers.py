"""Containers and workflow: linted, valid, and in step with the checkout they build."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from merton.cli.main import COMMANDS
from merton.cli.tree import STUDIES
from patience import stretched
from sources import PROJECTS, project

CHECKOUT = Path(__file__).parents[3]
DOCKERFILES = sorted((CHECKOUT / "docker").glob("Dockerfile.*"))
COMPOSE = sorted((CHECKOUT / "docker").glob("compose*.yaml"))
FORMS = sorted((CHECKOUT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((CHECKOUT / ".github/workflows").glob("*.y*ml"))
NOT_IN_THE_LAB = {
    "cluster": "260 MB, for a cluster of machines",
    "curation": "benchmarks are curated at a desk; the sandbox needs namespaces that Docker forbids",
    "dataset": "merton-studies brings it",
    "frame": "notebooks are at a desk",
    "gym": "environments of others run at a desk",
    "iqa": "metrics of image quality are trained at a desk; those that ship need nothing",
    "lerobot": "wants an environment of its own",
    "mlflow": "runs are logged from a desk",
    "quality": "image quality metrics are desk work",
    "rerun": "a viewer is for a desk with a screen",
    "tensorboard": "runs are logged from a desk",
    "wandb": "runs are logged from a desk",
}


def instructions(file: Path) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, as (name, rest), comments gone and lines joined."""
    text = "\n".join(line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def tool(name: str) -> str:
    """A program beside this Python."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        pytest.skip(f"no {name}: make develop")
    return str(path)


def test_there_are_two_images_and_a_workflow() -> None:
    assert [file.name for file in DOCKERFILES] == ["Dockerfile.ci", "Dockerfile.lab"]
    assert COMPOSE
    assert WORKFLOWS


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_hadolint_reports_nothing(file: Path) -> None:
    command = [tool("hadolint"), "--config", str(CHECKOUT / ".hadolint.yaml"), "--format", "json", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60))
    assert ran.stderr == ""
    found = [finding for finding in json.loads(ran.stdout) if finding["level"] in ("error", "warning")]
    assert not found


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        *(("github-workflows", file) for file in WORKFLOWS),
        *(("compose-spec", file) for file in COMPOSE),
        *(("github-issue-forms", file) for file in FORMS),
        ("dependabot", CHECKOUT / ".github/dependabot.yml"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_files_are_valid_by_their_schema(schema: str, file: Path) -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=stretched(120))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.name)
def test_images_are_built_from_existing_files_and_run_without_privileges(file: Path) -> None:
    parts = instructions(file)
    assert [rest for name, rest in parts if name == "FROM"] == ["ros:jazzy-ros-base-noble"]
    users = [rest for name, rest in parts if name == "USER"]
    assert users[-1:] == ["merton"]
    assert not [rest for name, rest in parts if name == "ADD"]
    secret = re.compile(r"(?i)(password|token|secret|api_key)\s*=")
    assert not [rest for name, rest in parts if name in ("ARG", "ENV", "RUN") and secret.search(rest)]
    for rest in (rest for name, rest in parts if name == "RUN" and "apt-get install" in rest):
        assert "--no-install-recommends" in rest
        assert rest.endswith("rm -rf /var/lib/apt/lists/*")
    for rest in (rest for name, rest in parts if name == "COPY"):
        *sources, _ = [word for word in rest.split() if not word.startswith("--")]
        assert all((CHECKOUT / source).exists() for source in sources)
    entry = next(json.loads(rest) for name, rest in parts if name == "ENTRYPOINT")
    assert (CHECKOUT / entry[0]).stat().st_mode & 0o111, "the entry point must be executable"
    assert [rest for name, rest in parts if name == "STOPSIGNAL"] == ["SIGINT"], (
        "ros2 launch leaves its nodes on SIGTERM"
    )


def installed(file: Path) -> set[str]:
    """The extras of both packages that an image installs, and the groups."""
    text = file.read_text(encoding="utf-8")
    return {name for names in re.findall(r"-e '[\w./]+\[(.*?)\]'", text) for name in names.split(",")} | set(
        re.findall(r"--group (\w+)", text)
    )


def test_images_install_every_extra_that_they_need() -> None:
    """A new extra has to be installed in the lab's image, or to be named here with the reason."""
    ci, lab = DOCKERFILES
    extras = {name for file in PROJECTS for name in project(file)["optional-dependencies"]}
    assert installed(lab) == extras - NOT_IN_THE_LAB.keys()
    assert NOT_IN_THE_LAB.keys() <= extras
    setup = (CHECKOUT / "tools/setup.sh").read_text("utf-8")
    wanted = re.search(r"everything\(\) \{(.*?)\n\}", setup, re.DOTALL)
    assert wanted is not None
    assert all(line in ci.read_text("utf-8") for line in re.findall(r"-e '.*?'|--group \w+", wanted[1])), (
        "what setup.sh installs, without the wheels of ROS"
    )


def test_the_programs_beside_merton_are_in_the_image_that_tests_with_them() -> None:
    ci = DOCKERFILES[0].read_text(encoding="utf-8")
    assert "MERTON_NEIGHBOURS=required" in ci
    for package in ("ros-gz", "gz-ros2-control", "ros2-controllers", "moveit-py", "ur-robot-driver"):
        assert f"ros-jazzy-{package} " in ci.replace("\n", " ")
    manifest = (CHECKOUT / "src/merton_bringup/package.xml").read_text(encoding="utf-8")
    assert "<exec_depend>robot_state_publisher</exec_depend>" in manifest, "rosdep installs it"


def test_private_and_large_files_are_kept_out_of_images() -> None:
    ignored = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv*", ".env*", "build", "install", "log", "runs", "**/*.key", "**/*.pem"} <= set(ignored)
    assert not {"src", "config", "launch", "urdf", "requirements", "docker", "tests"} & set(ignored)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_pin_actions_and_have_few_rights(file: Path) -> None:
    workflow = YAML(typ="safe").load(file)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 120
        assert not job["runs-on"].endswith("latest")
        for step in job["steps"]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a@" + "0" * 40))
    text = file.read_text(encoding="utf-8")
    assert "secrets." not in text
    experiment = re.search(r"experiment:=(\S+)", text)
    assert experiment
    assert (CHECKOUT / "config/experiments" / experiment[1]).exists()
    for dockerfile in re.findall(r"docker build -f (\S+)", text):
        assert (CHECKOUT / dockerfile) in DOCKERFILES


def test_services_of_the_compose_file_run_existing_programs() -> None:
    tree = YAML(typ="safe").load(CHECKOUT / "docker/compose.yaml")
    commands = [*(name for _, name, _, _ in COMMANDS), *STUDIES]
    for name, service in tree["services"].items():
        command = service["command"].split()
        # not `ros2 run`: after the SIGINT of `docker stop` it waits for a program that did not get one
        assert command[:3] == ["python3", "-m", "merton"], name
        assert command[3] in commands
        for word in command:
            if word.startswith("config/"):
                assert (CHECKOUT / word).exists()
        assert "privileged" not in service
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "nothing listens beyond this machine unless asked"
    for file in COMPOSE:
        overriding = YAML(typ="safe").load(file)["services"]
        assert overriding.keys() <= tree["services"].keys()
