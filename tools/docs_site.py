"""Builds the documentation's site: `.venv/bin/python tools/docs_site.py build/docs`, or `make docs`.

The pages are the Markdown files of the checkout, arranged by `SECTIONS`, and a reference of the library's public
modules from their docstrings. The site asks no other machine for anything, and its search works from a folder.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {
    "Start": ("README", "use/installing", "reference/glossary", "reference/limits", "use/troubleshooting"),
    "Tutorials": (
        *("use/tutorials/your_vla", "use/tutorials/your_images", "use/tutorials/your_distortion", "use/python"),
        *("use/tutorials/your_leaderboard", "use/tutorials/the_lab", "use/tutorials/your_image_quality"),
        *("use/tutorials/your_ratings", "use/tutorials/your_arena", "use/tutorials/your_questions"),
        *("use/tutorials/your_world_model_board", "use/tutorials/lerobot"),
        *("use/your_simulator", "use/recipes", "studies/map"),
    ),
    "Experiments": (
        *("use/experiments", "use/tasks", "use/adding_a_task", "use/scenes", "use/distortions"),
        *("reference/scores", "use/attribution", "use/gate", "use/worlds", "use/episodes", "use/proxy"),
        "use/gymnasium",
    ),
    "Models and images": (
        *("use/models", "use/adding_a_model", "use/conventions", "use/serving", "use/adding_a_distortion"),
        *("use/dataset", "use/adding_a_metric"),
        *("studies/annotate", "studies/quality", "studies/learned_metrics", "studies/curation"),
    ),
    "Boards": (
        *("use/leaderboards", "reference/ratings", "use/results", "use/submissions", "use/serving_boards"),
        "studies/published_rules",
    ),
    "ROS 2 and the lab": (
        *("lab/ros", "reference/interfaces", "lab/lab", "lab/lab_robot", "use/adding_a_robot", "lab/gripper"),
        "lab/cameras",
        *("lab/calibration", "lab/monitor", "lab/recording", "lab/safety", "lab/security", "lab/gazebo"),
        "lab/gazebo_against_mujoco",
    ),
}
"""Heading of the menu to its pages in docs/, in order; all others stand under "More"."""
INTERNAL = ("__version__", "cli", "cluster", "hosts", "load", "pages", "web")
"""Names that the library exports for merton_studies and merton_nodes alone; and `load`, which is a function."""
LINK = re.compile(r"\]\(([^)\s#]+)")
MENDED = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="All pages">'),
    ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="This page">'),
    ('<aside class="toc-drawer no-toc">', '<aside class="toc-drawer no-toc" aria-label="This page">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper ', '<div tabindex="0" class="table-wrapper '),
    ('<th class="head"><p></p></th>', '<td class="head"></td>'),
    ('<div id="search-results">', '<h1>Search</h1><div id="search-results">'),
)
"""Replacements in every page, for readers by ear and by keyboard: levels and names of parts, scrolling by keys."""


def main(out: str) -> int:
    """Build into the folder `out`; the exit code of Sphinx, which is not 0 if there was a warning."""
    from sphinx.cmd.build import main as sphinx

    source = Path(out).resolve().parent / "docs_source"
    shutil.rmtree(source, ignore_errors=True)
    write_source(source)
    gc.disable()  # the documents stay until the end: scanning them again and again is a fifth of the time
    code = sphinx(["-W", "--keep-going", "-q", "-b", "html", "-d", f"{source}.cache", str(source), out])
    for page in Path(out).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for found, put in MENDED:
            text = text.replace(found, put)
        page.write_text(text, encoding="utf-8")
    return int(code)


def write_source(source: Path) -> None:
    """Everything that Sphinx reads: the pages, the files they link to, the reference and the configuration."""
    outside = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docker/README.md", "tools/README.md")
    pages = [ROOT / name for name in outside]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    for page in pages:
        copy(page, source)
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target and (file := (page.parent / target).resolve()).is_file() and file not in pages:
                copy(file, source)
    shutil.copytree(ROOT / "docs" / "site", source, dirs_exist_ok=True)
    modules = public_modules()
    for package, names in modules.items():
        lines = [f"# merton.{package}"]
        for name in names:
            importlib.import_module(name)  # before Sphinx does, which sets TYPE_CHECKING meanwhile
            heading = [] if name == names[0] else [f"## {name.removeprefix('merton.')}"]
            lines += [*heading, f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```"]
        (source / "api").mkdir(exist_ok=True)
        (source / "api" / f"{package}.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    (source / "README.md").rename(source / "index.md")
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if page != source / "docker" / "README.md":
            root = "../" * (len(page.relative_to(source).parts) - 1)
            page.write_text(text.replace(f"]({root}README.md", f"]({root}index.md"), encoding="utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as file:
        file.write(menu(pages, list(modules)))


def copy(file: Path, source: Path) -> None:
    """A file of the checkout, at the same place below `source`."""
    target = source / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def public_modules() -> dict[str, list[str]]:
    """Package of the library to the names of its public modules, itself first: its `__all__` and theirs."""
    import merton

    found: dict[str, list[str]] = {}
    for package in merton.__all__:
        if package in INTERNAL:
            continue
        names = [f"merton.{package}"]
        for member in getattr(importlib.import_module(names[0]), "__all__", ()):
            if importlib.util.find_spec(f"{names[0]}.{member}") is not None:
                names.append(f"{names[0]}.{member}")
        found[package] = names
    return found


def menu(pages: list[Path], packages: list[str]) -> str:
    """The menu, at the end of the first page: a heading and its pages each, to be seen at the left."""
    sections = {heading: [f"docs/{name}.md" for name in names] for heading, names in SECTIONS.items()}
    named = {"README.md", *(name for names in sections.values() for name in names)}
    sections["More"] = sorted({str(page.relative_to(ROOT)) for page in pages} - named)
    sections["Python reference"] = [f"api/{package}.md" for package in packages]
    lines = [""]
    for heading, names in sections.items():
        lines += ["```{toctree}", f":caption: {heading}", ":maxdepth: 1", ":hidden:", "", *names, "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
