"""Files for contributors: valid by their schemas, and in step with the checkout that they speak of."""

from __future__ import annotations

import re

from ruamel.yaml import YAML

from sources import ROOT

GITHUB = ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
DEPENDABOT = GITHUB / "dependabot.yml"
PRE_COMMIT = YAML(typ="safe").load(ROOT / ".pre-commit-config.yaml")["repos"]


def test_there_are_forms_for_a_fault_a_number_and_an_adapter() -> None:
    assert [form.stem for form in FORMS] == ["bug", "new_adapter", "wrong_number"]


def test_pages_that_templates_name_are_there() -> None:
    templates = [file.read_text(encoding="utf-8") for file in (*FORMS, GITHUB / "pull_request_template.md")]
    pages = re.findall(r"\bdocs/[\w./]*\w|\b[A-Z]+\.md\b", "\n".join(templates))
    assert pages
    for page in pages:
        assert (ROOT / page).exists(), page


def test_dependabot_looks_where_versions_are() -> None:
    for update in YAML(typ="safe").load(DEPENDABOT)["updates"]:
        for folder in update.get("directories", [update.get("directory")]):
            assert (ROOT / folder.lstrip("/")).is_dir(), folder


def test_local_hooks_are_what_make_lint_runs() -> None:
    (local,) = (repository["hooks"] for repository in PRE_COMMIT if repository["repo"] == "local")
    lint = re.findall(r"\$\(BIN\)/((?:ruff|mypy)[ \w]*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    hooks = [re.sub(r" --force-exclude$", "", hook["entry"]).removeprefix(".venv/bin/") for hook in local]
    assert hooks == [command.strip() for command in lint]


def test_foreign_hooks_are_of_one_version() -> None:
    foreign = [repository for repository in PRE_COMMIT if repository["repo"] != "local"]
    assert foreign
    for repository in foreign:
        assert re.fullmatch(r"https://github\.com/[\w-]+/[\w-]+", repository["repo"])
        assert re.fullmatch(r"v\d+(\.\d+)+", repository["rev"])
