"""A pipeline: two small programs that a person can read, diff and run again, and a file that says where they are from.

    pipeline.json   origin, versions, hashes of the programs, rounds of their writing
    infer.py        predict(case, ask) -> str: asks the model and returns its answer (A2Eval, equation 8)
    score.py        score(case, prediction) -> float in 0..1 (equation 9)

Both are of Python's standard library alone. `case` is what `case_for_infer` and `case_for_score` give: the first has no
right answer, no identifier and nothing else that tells it. `ask(prompt, max_tokens=32, pictures=None)` returns the text
of the model that is evaluated; `pictures` are numbers of the case's pictures, all of them by default.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from merton import __version__
from merton.config import Model, validated
from merton.errors import InputError, UnknownNameError
from merton.files import write_file
from merton_studies.curation.question import ANSWER_KINDS, Question

ABOUT, INFER, SCORE = "pipeline.json", "infer.py", "score.py"
TOLERANCE = "tolerance"
"""The entry of `Question.meta` with the largest error of a right number, in the number's unit; without it a number is
scored by its mean relative accuracy."""
_TEMPLATES = "merton_studies.harness.templates"
SHARED = ("words", "quantity", "named", "truth")
"""Parts of a scoring program that the kinds of answers have in common."""


class About(Model):
    """The file pipeline.json.

    Attributes:
        form: of the folder.
        origin: "composed" of the verified templates, or "written" by a language model.
        kinds: of answers that the programs know.
        sha256: of infer.py and score.py.
        made: versions, and of written programs the model, the hashes of prompts and the rounds.
    """

    form: Literal["merton pipeline 1"] = "merton pipeline 1"
    origin: Literal["composed", "written"]
    kinds: tuple[str, ...]
    sha256: dict[str, str]
    made: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    """The two programs, as text, and their origin; see `About`."""

    infer: str
    score: str
    origin: Literal["composed", "written"]
    kinds: tuple[str, ...]
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> dict[str, str]:
        """Hash of each program, by the name of its file."""
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in self.programs.items()}

    @property
    def programs(self) -> dict[str, str]:
        """Name of the file to text."""
        return {INFER: self.infer, SCORE: self.score}


def composed(kinds: Iterable[str]) -> Pipeline:
    """The pipeline of the verified templates for some kinds of answers; same kinds, same bytes.

    Raises UnknownNameError for a kind that is none of `ANSWER_KINDS`.
    """
    wanted = set(kinds)
    for kind in sorted(wanted - set(ANSWER_KINDS)):
        raise UnknownNameError("kind of answer", kind, ANSWER_KINDS)
    known = tuple(kind for kind in ANSWER_KINDS if kind in wanted)
    if not known:
        raise InputError("a pipeline needs at least one kind of answer")
    infer = _program("infer", "predict", "ask", "The model's answer to a case, as text.", ("question",), known)
    score = _program("score", "score", "prediction", "The score of a prediction, 0..1.", SHARED, known)
    return Pipeline(infer, score, "composed", known, {"merton": __version__})


def _program(role: str, verb: str, second: str, says: str, shared: tuple[str, ...], kinds: tuple[str, ...]) -> str:
    """One program: imports, the parts of the templates, and the function that chooses among them."""
    imports: set[str] = set()
    parts = []
    for name in (*shared, *kinds):
        source = inspect.getsource(import_module(f"{_TEMPLATES}.{role}_{name}"))
        tree = ast.parse(source)
        lines = source.splitlines()
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                text = ast.unparse(node)
                if "merton" not in text and "__future__" not in text:
                    imports.add(text)
        body = [node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
        title = (ast.get_docstring(tree) or "").replace("\n", "\n# ")
        parts.append(f"# {title}\n\n" + "\n".join(lines[body[0].lineno - 1 :]).strip())
    table = "".join(f'    "{kind}": {verb}_{kind},\n' for kind in kinds)
    result, form = ("str", "Callable[..., str]") if role == "infer" else ("float", "str")
    head = f'"""{says} Composed by Merton of verified parts, one for each kind of answer."""'
    end = (
        f"KINDS = {{\n{table}}}\n\n\ndef {verb}(case: dict[str, Any], {second}: {form}) -> {result}:\n"
        f'    """{says}"""\n    return KINDS[case["answer_kind"]](case, {second})\n'
    )
    lines_of_imports = "\n".join(["from __future__ import annotations", "", *sorted(imports)])
    return "\n\n\n".join([f"{head}\n\n{lines_of_imports}", *parts, end])


def case_for_infer(question: Question) -> dict[str, Any]:
    """The case of a question for the inference program: the content that a person would see who is to answer it.

    Listed one by one, so that a new field of `Question` stays hidden; identifiers may tell the answer, so they are not
    in it.
    """
    return {
        "text": question.text,
        "situation": question.situation,
        "answer_kind": question.answer_kind,
        "choices": list(question.choices),
        "unit": question.unit,
        "pictures": len(question.media),
        "video": question.video,
    }


def case_for_score(question: Question) -> dict[str, Any]:
    """The case of a question for the scoring program: that of inference, the right answers, the tolerance or ""."""
    right = {"answer": question.answer, "also": list(question.also)}
    return {**case_for_infer(question), **right, TOLERANCE: question.meta.get(TOLERANCE, "")}


def write_pipeline(pipeline: Pipeline, out: Path) -> None:
    """Write the three files; raises InfrastructureError if the folder cannot be written."""
    out.mkdir(parents=True, exist_ok=True)
    about = About(origin=pipeline.origin, kinds=pipeline.kinds, sha256=pipeline.sha256, made=pipeline.made)
    for name, text in pipeline.programs.items():
        write_file(out / name, text.encode())
    write_file(out / ABOUT, (json.dumps(about.model_dump(mode="json"), indent=1, sort_keys=True) + "\n").encode())


def read_pipeline(folder: Path) -> Pipeline:
    """The pipeline in a folder; raises InputError if it is none, or a program has changed since it was validated."""
    try:
        about = validated(About, (folder / ABOUT).read_text(encoding="utf-8"), str(folder / ABOUT))
        programs = {name: (folder / name).read_text(encoding="utf-8") for name in (INFER, SCORE)}
    except OSError as error:
        raise InputError(f"{folder} is no pipeline: {error.strerror or error} ({error.filename})") from None
    pipeline = Pipeline(programs[INFER], programs[SCORE], about.origin, about.kinds, about.made)
    for name, digest in pipeline.sha256.items():
        if about.sha256.get(name) != digest:
            raise InputError(f"{folder / name} has changed since it was validated: its hash is not that of {ABOUT}")
    return pipeline
