"""The answer in a model's raw text: forms that published models write, and what every use of a model makes of them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.cognition.final_answer import final_answer, is_unfinished, spoken
from merton.cognition.models.base import Answer
from merton.config import Model
from merton.errors import InputError, InvalidAnswerError
from merton_studies.annotate.cache import CachedResponse
from merton_studies.annotate.prompting import _reply
from merton_studies.annotate.tables import value_of
from merton_studies.curation.llm.reading import parsed

B = [
    "B",
    " B\n",
    "<think>A is near. C is far.</think>\n\nB",  # DeepSeek-R1, Qwen3, GLM-4.1V, InternVL3.5
    "A is near. C is far.\n</think>\n\nB",  # where the template opened it
    "<think>\n\n</think>\n\nB",  # Qwen3 told not to think
    "<THINK>A</THINK>B",
    "<thinking>A</thinking>B",
    "<thought>A</thought>B",
    "<reasoning>A</reasoning>\n<answer>\nB\n</answer>",
    "<seed:think>A</seed:think>B",  # Seed-OSS
    "[THINK]A[/THINK]B",  # Magistral
    "◁think▷A◁/think▷B",  # Kimi-VL
    "<|START_THINKING|>A<|END_THINKING|><|START_RESPONSE|>B<|END_RESPONSE|>",  # Command A
    "<|begin_of_thought|>A<|end_of_thought|><|begin_of_solution|>B<|end_of_solution|>",
    "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",  # gpt-oss
    "analysisA is near.assistantfinalB",  # the same without its special tokens
    "<think>A</think><think>C</think>B",
    "<think>of <think>A</think> C</think>B",
    "<think>A</think><answer>B</answer>",
    "<answer>B",  # the end tag was the stop word
    "<answer></answer><answer>B</answer>",
    "<CONCLUSION>B</CONCLUSION>",
    "<|begin_of_box|>B<|end_of_box|>",  # GLM-4.5V
    r"\boxed{B}",
    r"So it is $\boxed{\text{B}}$.",
    r"First \boxed{A}, no: \boxed{B}",
    r"\boxed{B",
    "B<|im_end|>",
    "B</s>",
    "B<eos>",
    "B<end_of_turn>",
    "B<|eot_id|>",
    "B<end_of_utterance>",
    "B<｜end▁of▁sentence｜>",
    "<s>B</s>",
    "<|im_start|>assistant\nB<|im_end|>\n<|im_start|>user\nAnd C?<|im_end|>",  # goes on with turns of its own
    "<|start_header_id|>assistant<|end_header_id|>\n\nB<|eot_id|>",
    "Here is my thought process: A is near, C is not. Here is my response: B",  # Granite
    "Here's my thought process:\nA is near.\n\nHere's my response:\nB",
    "<|think|>A<|/think|>B",
    "&lt;think&gt;A&lt;/think&gt;B",  # escaped by a gateway
    *(f"<{name}>A</{name}>B" for name in ("thought_process", "thinking_process", "chain_of_thought", "reflect")),
    *(f"<{name}>A</{name}>B" for name in ("longcat_think", "reasoning_content", "think_fast", "m_thinking")),
    "<|inner_prefix|>A<|inner_suffix|>B",  # Apertus
    "A is near.</think_never_used_51bce0c785ca2f68081bfa7d91973934>B",  # Hunyuan
    *("<output>B</output>", "<final>B</final>", "<result>B</result>"),
    "My reasoning: A or C\n[BEGIN FINAL RESPONSE]\nB\n[END FINAL RESPONSE]\n<|end|>",  # Apriel
    "<answer></answer>B",
    "<answer>B</answer><|im_end|><|im_start|>user\n<answer>C</answer>",
]


@pytest.mark.parametrize(
    "raw",
    [
        "<think>A is near. C is",
        "<think>",
        "<|channel|>analysis<|message|>A is",
        "[THINK]A",
        "◁think▷A",
        "\n<thinking>\nA",
        "Sure.\n<think>A is near, C is far",
        "B\n<think>I am not sure",
        "analysisWe look. A is near, B is f",  # gpt-oss without its special tokens
        "Here is my thought process:\nA is near",
        "<longcat_think>\nA",
    ],
)
def test_reasoning_that_was_cut_off_is_no_answer(raw: str) -> None:
    assert final_answer(raw) == ""
    assert is_unfinished(raw)
    with pytest.raises(InvalidAnswerError, match="cut off after 32 tokens, before it came out of its reasoning"):
        spoken(Answer(raw), 32)
    assert value_of(CachedResponse('{"text": "<think>A"}', 0.1))["failed"].startswith("the answer was cut off")


class Thing(Model):
    program: str


PROGRAM = '{"program": "def predict(case, ask):\\n    return ask(case[\\"text\\"]).split(\'</think>\')[-1]"}'


@pytest.mark.parametrize(
    "raw",
    [
        PROGRAM,
        f"<think>a {{}} first</think>{PROGRAM}",
        f"Here it is:\n```json\n{PROGRAM}\n```",
        f"<answer>{PROGRAM}</answer>",
        f"{PROGRAM}<|im_end|>",
        f"a {{}} first</think>\n\n{PROGRAM}",
    ],
)
def test_marks_inside_a_string_of_json_are_its_content(raw: str) -> None:
    assert parsed(raw, Thing).program.endswith("split('</think>')[-1]")


class Marked(Model):
    mark: int


@pytest.mark.parametrize(
    "raw",
    [
        '{"mark": 4, "reason": "near"}',
        '{"mark": 3} is the form. Mine: {"mark": 4}',
        'The form is {"mark": 1..5}. Mine: {"mark": 4}',
        'I think {these} are near. {"mark": 4} as {asked}',
        '```json\n{"mark": 3}\n```\nNo:\n```json\n{"mark": 4}\n```',
        '{"mark": 4} {"note": "done"}',
    ],
)
def test_the_last_object_that_has_the_form_is_read(raw: str) -> None:
    assert parsed(raw, Marked) == Marked(mark=4)


def test_an_object_that_breaks_off_behind_a_whole_one_is_refused() -> None:
    """The whole one may be the draft of the other."""
    with pytest.raises(InputError, match="cannot be read"):
        parsed('{"mark": 3} or better {"mark": 4', Marked)


def test_an_object_inside_reasoning_that_was_cut_off_is_no_answer() -> None:
    with pytest.raises(InputError, match="no JSON object"):
        parsed('<think>perhaps {"program": "x"}', Thing)


MARKS = st.sampled_from(
    [
        *(
            "<think>",
            "</think>",
            "<answer>",
            "</answer>",
            "\\boxed{",
            "}",
            "<|im_end|>",
            "<|channel|>",
            "</s>",
            "{",
            '"',
        ),
        *("final<|message|>", "\n", "B", "analysis", "[THINK]", "\\text{", "\\frac{1}{2}", "\ud800", "<|", "|>"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(MARKS, st.text(max_size=4)), max_size=20).map("".join))
def test_no_text_is_a_traceback(raw: str) -> None:
    assert isinstance(final_answer(raw), str)
    assert not (is_unfinished(raw) and final_answer(raw))
    with suppress(InputError):
        parsed(raw, Thing)


def test_annotations_keep_no_fault_of_an_adapter() -> None:
    """It may be mended: the request is made again, as `merton curate evaluate` does."""
    for output in (Answer(None), None):  # type: ignore[arg-type]
        found = _reply("key", output, 0.1, "lab-vlm")
        assert found.response is None
    assert "lab-vlm" in _reply("key", Answer(None), 0.1, "lab-vlm").error  # type: ignore[arg-type]
    assert _reply("key", Answer("B"), 0.1, "lab-vlm").response == '{"text":"B","truncated":false}'
