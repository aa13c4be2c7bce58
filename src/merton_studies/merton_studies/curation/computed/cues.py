"""Wordings that give away which capability a question needs, and that capability in words; ours.

They were written from the kinds of questions that docs and papers of embodied benchmarks name (A2Eval's Table 1,
Embodied Arena's dimensions), before any labelled question was looked at.
"""

from __future__ import annotations

import re

from merton_studies.curation.question import AnswerKind, Question

_CUES = (
    (
        ("next (action|step)", "what should", "steps?", "plan", "in (what|which) order should"),
        "deciding what to do next",
    ),
    (
        (
            "changed|moved|happened|appeared|disappeared|before|after",
            "(first|second|two) (frames?|pictures?|images?)",
        ),
        "telling what changed over time and in which order",
    ),
    (("fall|tip|slide|topple|collide|stable|balanced?|fit|fits|pushed|let go",), "predicting what physics does"),
    (("how many", "count", "number of"), "counting how many things there are"),
    (
        (
            "how (far|long|tall|wide|high|large|big|deep|much)",
            "distance|size|nearer|closer|bigger|larger|smaller",
        ),
        "estimating or comparing distances and sizes",
    ),
    (
        ("(can|could|may) (i|you|we|the|it|be)", "used? (for|to|as)", "useful|grasp|gripper|pour"),
        "judging what can be done with an object and what it is used for",
    ),
    (
        ("^(why|who|when)", "season|culture|holiday|style|occasion|century|country"),
        "general knowledge of the world",
    ),
    (
        (
            "open|opened|closed|shut|locked|unlocked|full|empty|clean|dirty|lit|state",
            "(on or|turned|switched) (on|off)",
        ),
        "telling the present state of an object, such as open or closed, on or off",
    ),
    (("colou?r|material|shape|pattern|texture|brand|made of",), "telling the color, material or shape of an object"),
    (("^where", "(which|what) room", "where (is|are|did)"), "telling where an object is"),
    (
        ("left|right|in front|behind|above|below|under|beside|next to|between|facing|relative",),
        "telling where objects are to each other: left, right, in front, behind",
    ),
    (("^(what|which)", "name|identify"), "naming which object something is"),
)
"""Regular expressions of whole words, and the capability that they give away. The first that matches counts."""
_KINDS: dict[AnswerKind, str] = {
    "number": "counting things or estimating a quantity",
    "point": "pointing at where an object is in the picture",
    "actions": "deciding what to do next",
}
"""Kind of answer to the capability that it gives away where the words name none."""
_PATTERNS = tuple((re.compile("|".join(rf"\b({part})\b" for part in parts)), told) for parts, told in _CUES)


def capability(question: Question) -> str | None:
    """The capability that the first matching cue names, or that the kind of answer does; None without either."""
    text = question.text.lower()
    found = next((told for pattern, told in _PATTERNS if pattern.search(text)), None)
    return found or _KINDS.get(question.answer_kind)
