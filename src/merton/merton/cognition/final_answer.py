"""The answer in a model's raw text: reasoning, end tokens and wrappers are taken off, in this one place for every use.

Raw text is what caches keep; it is read by `final_answer` whenever it is scored, shown to a judge, parsed, or given to
a program of a pipeline. So older caches stay of use. The marks are those that published models write; the lists of
reasoning parsers of vLLM and the chat templates of the models name them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from merton.errors import InvalidAnswerError

if TYPE_CHECKING:
    from merton.cognition.models.base import Answer

VERSION = 1
"""Raised with every change that makes another answer of the same text; stored beside scores."""

_NAMES = (
    r"(?:\w{1,20}[_:])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|analysis|rationale|cot)"
    r"(?:_(?:process|content|steps?|fast|mode|never_used_\w+))?|scratch(?:pad)?|chain_of_thought"
)
_PAIRS = (
    (r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    (r"◁think▷", r"◁/think▷"),  # Kimi-VL
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # OpenThinker
    (r"<\|channel>thought\b", r"<channel\|>"),  # Gemma 4
    (r"<unused94>thought\b", r"<unused95>"),  # MedGemma
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"(?i:\A\W*here(?: i|')s my thought process\b)", r"(?i:here(?: i|')s my response\b)\s*:\s*"),  # Granite
    (
        rf"(?:<\s*|&lt;)\|?(?:{_NAMES})\|?(?:\s*>|&gt;)",
        rf"(?:<\s*\|?\s*|&lt;)/\s*(?:{_NAMES})\|?(?:\s*>|&gt;)",
    ),  # all others
)
"""Regular expressions of the marks that open and close reasoning."""
_MARK = re.compile(
    "|".join(f"(?P<o{place}>{opens})|(?P<c{place}>{closes})" for place, (opens, closes) in enumerate(_PAIRS)),
    re.IGNORECASE,
)

_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>")  # gpt-oss
_BARE_CHANNELS = re.compile(
    r"\Aanalysis(?:\S[\s\S]*?(assistantfinal)|[A-Z][\s\S]*\Z)"
)  # the same without its special tokens
_BEGIN = re.compile(
    r"\A(?:\s|<s>|<bos>|<\|begin_of_text\|>|<\|startoftext\|>|<\|begin▁of▁sentence\|>|<｜begin▁of▁sentence｜>"
    r"|(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|turn>|<\|start\|>)\s*(?:assistant|model)\b"
    r"|<\|end_header_id\|>|<\|assistant\|>|<｜Assistant｜>|<\|message\|>)+"
)
_END = re.compile(
    r"</s>|<eos>|<pad>|<unk>|<end_of_turn>|<start_of_turn>|<turn\|>|<\|turn>|<end_of_utterance>|<endoftext>"
    r"|<end_of_text>|<｜end▁of▁sentence｜>|<｜User｜>"
    r"|<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|eot|eos|end|return|call|end_of_turn|endofturn"
    r"|END_OF_TURN_TOKEN|end_of_sentence|end▁of▁sentence|end_of_utterance|pad|user|observation|start_header_id)\|>",
    re.IGNORECASE,
)
"""Tokens behind which nothing belongs to the answer: a server without its stop token goes on with turns of its own."""
_LEADING = re.compile(rf"(?:\s|{_END.pattern})*", re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[\w▁]{1,40}\|>")

_QUOTE = re.compile(r'(?<!\\)"')

_WRAPPERS = (
    r"<\s*(?:final[_ ]?)?answer\s*>([\s\S]*?)(?:<\s*/\s*(?:final[_ ]?)?answer\s*>|\Z)",
    r"<\s*(?:conclusion|response|solution|output|final|result)\s*>([\s\S]*?)"
    r"(?:<\s*/\s*(?:conclusion|response|solution|output|final|result)\s*>|\Z)",
    r"\[BEGIN FINAL RESPONSE\]([\s\S]*?)(?:\[END FINAL RESPONSE\]|\Z)",  # Apriel
    r"<\|begin_of_box\|>([\s\S]*?)(?:<\|end_of_box\|>|\Z)",  # GLM-4.5V
    r"<\|begin_of_solution\|>([\s\S]*?)(?:<\|end_of_solution\|>|\Z)",
    r"<\|START_RESPONSE\|>([\s\S]*?)(?:<\|END_RESPONSE\|>|\Z)",
)
_WRAPPED = [re.compile(pattern, re.IGNORECASE) for pattern in _WRAPPERS]
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_EMPTY_BOX = re.compile(_BOXED.pattern + r"\s*\}")
_TEXT = re.compile(r"\\{1,2}(?:text|textbf|textit|mathrm|mathbf|mbox|textrm)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\{1,2}[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")


def final_answer(raw: str) -> str:
    r"""The answer in a model's raw text, without space around it; "" where there is none.

    In this order: the text ends at the first end token with something before it; reasoning is passed over
    (`<think>...</think>` and its kin, also where the prompt's template opened it; reasoning that never ends is no
    answer); of `<answer>...</answer>` and its kin, and of `\boxed{...}`, the last one that is not empty is the answer.
    A text that begins as JSON or as a fence of code keeps its wrappers, and marks inside a string of JSON are its
    content.
    """
    return _read(raw)[0]


def without_reasoning(raw: str) -> str:
    """A model's raw text between its reasoning and its end token, wrappers and all: for what has a form of its own."""
    return _said(raw)[0].strip()


def is_unfinished(raw: str) -> bool:
    """Whether a text ends in its reasoning, so that it has no answer."""
    text, open_ended = _read(raw)
    return open_ended and not text


def spoken(answer: Answer, max_tokens: int | None = None) -> Answer:
    """An answer with its final text alone.

    Args:
        answer: as a model gave it.
        max_tokens: the limit it had, for the message.

    Raises:
        InvalidAnswerError: the text ends in its reasoning, or was cut off before any answer.
    """
    text, open_ended = _read(answer.text)
    if not text and (open_ended or answer.truncated):
        raise InvalidAnswerError(cut_off_sentence(max_tokens))
    return replace(answer, text=text)


def cut_off_sentence(max_tokens: int | None = None) -> str:
    """The reason why there is no answer, and the remedy, as a sentence without its end."""
    after = f" after {max_tokens} tokens" if max_tokens else ""
    return f"the answer was cut off{after}, before it came out of its reasoning: raise max_tokens of the model"


def _read(raw: str) -> tuple[str, bool]:
    """The answer, and whether the text ended in its reasoning."""
    text, open_ended = _said(raw)
    if not text.lstrip().startswith(("{", "```")):
        text = _SPECIAL.sub(" ", _unboxed(_unwrapped(text)))
    return text.strip(), open_ended


def _said(raw: str) -> tuple[str, bool]:
    """The text between reasoning and end token, and whether reasoning was left open."""
    text = _channel(raw.strip())
    return ("", True) if text is None else _without_reasoning(_ended(_BEGIN.sub("", text)))


def _channel(text: str) -> str | None:
    """The final channel of a text in channels; None if there are others alone; a text without any as it is."""
    bare = _BARE_CHANNELS.match(text)
    if bare:
        return text[bare.end() :] if bare[1] else None
    if "<|channel|>" not in text:
        return text
    channels = list(_CHANNEL.finditer(text))
    last = next((found for found in reversed(channels) if found[1].lower() == "final"), None)
    return None if last is None else text[last.end() :]


def _ended(text: str) -> str:
    """The text up to its first end token with something before it."""
    text = text[_LEADING.match(text).end() :]  # type: ignore[union-attr]
    found = _END.search(text)
    return text[: found.start()] if found else text


def _without_reasoning(text: str) -> tuple[str, bool]:
    """The text without reasoning, and whether reasoning was left open.

    Reasoning that opens a line and never ends leaves nothing, "Sure." before it is no answer; but what was said behind
    other reasoning that ended is one.
    """
    kept: list[str] = []
    place = 0
    opened: re.Match[str] | None = None
    was_closed = False
    quotes = _Quotes()
    for mark in _MARK.finditer(text):
        kind = str(mark.lastgroup)
        if opened is not None:
            if kind == f"c{str(opened.lastgroup)[1:]}":
                opened, place, was_closed = None, mark.end(), True
                kept.append(" ")
                quotes.read(" ")
            continue
        before = text[place : mark.start()]
        kept.append(before)
        quotes.read(before)
        place = mark.start()
        if quotes.are_open:
            continue
        if kind.startswith("c"):  # opened by the prompt's template
            kept, place, was_closed = [], mark.end(), True
            quotes = _Quotes()
        else:
            opened = mark
    said = "".join(kept)
    if opened is None:
        return said + text[place:], False
    if said.rpartition("\n")[2].strip():
        return said + text[opened.start() :], False
    return (said if was_closed else ""), True


class _Quotes:
    """Whether a text that is read piece by piece ends inside a string of JSON, which has one line, where marks are
    content."""

    def __init__(self) -> None:
        self._has_brace = self._is_odd = False
        self._last = ""

    @property
    def are_open(self) -> bool:
        """Whether what follows is inside a string."""
        return self._has_brace and self._is_odd

    def read(self, piece: str) -> None:
        """Read on."""
        if not piece:
            return
        line = piece.rpartition("\n")[2]
        is_new = len(line) < len(piece)
        count = len(_QUOTE.findall(line)) - (not is_new and self._last == "\\" and line.startswith('"'))
        self._is_odd = ((not is_new and self._is_odd) + count) % 2 == 1
        self._has_brace |= "{" in piece
        self._last = piece[-1]


def _unwrapped(text: str) -> str:
    """The text in the last wrapper that is not empty; without any, the text beside them."""
    for wrapped in _WRAPPED:
        inside = [found.strip() for found in wrapped.findall(text)]
        if inside:
            text = next((found for found in reversed(inside) if found), wrapped.sub(" ", text))
    return text


def _unboxed(text: str) -> str:
    r"""The text in the last \boxed{} that is not empty, to its own closing brace; without any, the text beside them."""
    for found in reversed(list(_BOXED.finditer(text))):
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        inside = text[found.end() : end - (depth == 0)]
        inside = _FRACTION.sub(r"\1/\2", _TEXT.sub(r"\1", inside)).strip()
        if inside:
            return inside
    return _EMPTY_BOX.sub(" ", text)
