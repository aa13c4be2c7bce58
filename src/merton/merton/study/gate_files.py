"""The result of a comparison in files: its page gate.html, gate.md for a pull request, gate.xml for a CI server."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from merton.files import write_file
from merton.pages.words import interval_words, readable, signed
from merton.results.text import MISSING, counted, one_line
from merton.statistics.sequential import Conclusion
from merton.study import gate_pictures
from merton.study.gate import Judgement, TaskConclusion, worst
from merton.study.gate_page import gate_page
from merton.study.values import VALUES

PAGE, MARKDOWN, JUNIT = "gate.html", "gate.md", "gate.xml"
PICTURES = ("course.svg", "differences.svg", "worst.svg")


def summary(judgement: Judgement, candidate: str, baseline: str) -> list[str]:
    """The verdict and its reasons in three or more plain sentences."""
    whole, metric = judgement.whole, judgement.metric
    lines = [_verdict_line(judgement, candidate, baseline)]
    if whole.difference is None:
        return lines
    lines.append(
        f"{metric.capitalize()} in {counted(whole.scenes, 'scene')}: {candidate} {_percent(judgement.means[0])}, "
        f"{baseline} {_percent(judgement.means[1])}."
    )
    lines.append(
        f"Difference {points(whole.difference)} points; 95 % interval {_ends(whole)}, whenever the comparison ends."
    )
    if whole.verdict is not Conclusion.UNRESOLVED:
        lines.append(
            "The comparison ended as soon as it was sure, so this mean lies, on average, too far from the limit of "
            f"{points(-judgement.delta)} points; the interval holds all the same."
        )
    lines += [
        f"Worse in {readable(part.name)}: {points(part.difference)} points, at most {points(part.interval[1])}, in "
        f"{counted(part.scenes, 'scene')}."
        for part in judgement.tasks
        if part.verdict is Conclusion.WORSE
    ]
    return lines


def write(run: Path, judgement: Judgement, candidate: str, baseline: str) -> None:
    """Write gate.html, gate.md, gate.xml and the three pictures into a run's directory; equal judgements, equal bytes.

    Raises:
        InfrastructureError: a file cannot be written.
    """
    pair = worst(judgement.pairs, VALUES[judgement.metric])
    pictures = (
        gate_pictures.course(judgement),
        gate_pictures.differences(judgement),
        gate_pictures.worst_scene(run, pair),
    )
    sentences = summary(judgement, candidate, baseline)
    contents = {
        PAGE: gate_page(judgement, (candidate, baseline), sentences, pictures, (MARKDOWN, JUNIT, *PICTURES)),
        MARKDOWN: markdown(judgement, candidate, baseline),
        JUNIT: junit(judgement, candidate, baseline),
        **{name: str(picture) for name, picture in zip(PICTURES, pictures, strict=True)},
    }
    for name, content in contents.items():
        write_file(run / name, f"{content}\n".encode())


def markdown(judgement: Judgement, candidate: str, baseline: str) -> str:
    """The page for a pull request."""
    first, *others = summary(judgement, candidate, baseline)
    lines = [f"## {_cell(first)}", "", *map(_cell, others), ""]
    lines += ["| task | scenes | difference, points | interval | |", "|---|---|---|---|---|"]
    lines += [f"| {_cell(readable(part.name))} | {_row(part)} | {part.verdict.value} |" for part in judgement.tasks]
    lines += ["", "The intervals of the tasks hold all together with 95 %.", ""]
    lines += [f"![The difference after every scene]({PICTURES[0]})", ""]
    lines += [f"![The difference in every task and type of distortion]({PICTURES[1]})", ""]
    lines += [f"![The scene with the largest loss]({PICTURES[2]})", ""]
    names = sorted(set(judgement.outcomes[0]) | set(judgement.outcomes[1]))
    lines += [
        "| trials | " + " | ".join(name.replace("_", " ") for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for agent, outcomes in zip((candidate, baseline), judgement.outcomes, strict=True):
        lines.append(f"| {_cell(agent)} | " + " | ".join(str(outcomes[name]) for name in names) + " |")
    return "\n".join(lines)


def junit(judgement: Judgement, candidate: str, baseline: str) -> str:
    """JUnit's XML: a test case of the verdict, and one of each task. An unresolved verdict is an error, an unresolved
    task is skipped."""
    name = f"merton gate {one_line(candidate)} against {one_line(baseline)}"
    cases = [_case("verdict", judgement.whole, " ".join(summary(judgement, candidate, baseline)), "error")]
    for part in judgement.tasks:
        text = f"{points(part.difference)} points {_ends(part)} in {counted(part.scenes, 'scene')}"
        cases.append(_case(part.name, part, text, "skipped"))
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)))
    for kind, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
    suite.extend(cases)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def points(value: float | None) -> str:
    """A difference in points of 100, with its sign."""
    return MISSING if value is None else signed(100.0 * value, 1)


def _case(name: str, part: TaskConclusion, text: str, unresolved: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="merton.gate", name=name)
    kind = {Conclusion.WORSE: "failure", Conclusion.UNRESOLVED: unresolved}.get(part.verdict)
    if kind is not None:
        ElementTree.SubElement(case, kind, message=text)
    else:
        ElementTree.SubElement(case, "system-out").text = text
    return case


def _verdict_line(judgement: Judgement, candidate: str, baseline: str) -> str:
    limit = f"more than {100.0 * judgement.delta:g} points"
    return {
        Conclusion.NOT_WORSE: f"Passed: {candidate} is not worse than {baseline} by {limit}.",
        Conclusion.WORSE: f"Failed: {candidate} is worse than {baseline} by {limit}.",
        Conclusion.UNRESOLVED: f"Not resolved: whether {candidate} is worse than {baseline} by {limit}.",
    }[judgement.whole.verdict]


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{100.0 * value:.1f} %"


def _row(part: TaskConclusion) -> str:
    return f"{part.scenes} | {points(part.difference)} | {_ends(part)}"


def _ends(part: TaskConclusion) -> str:
    return interval_words(part.interval, 1, 100, sign=True)


def _cell(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{character}" if character in r"\`*_[]<>|#" else character for character in one_line(text, 400))
