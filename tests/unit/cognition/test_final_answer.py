"""The answer in a model's raw text: forms that published models write, and what every use of a model makes of them."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.cognition.final_answer import final_answer, is_unfinished, spoken, without_reasoning
from merton.cognition.models.base import Answer
from merton.errors import InvalidAnswerError

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


@pytest.mark.parametrize("raw", B)
def test_what_models_write_around_an_answer_is_passed_over(raw: str) -> None:
    assert final_answer(raw) == "B"
    assert not is_unfinished(raw)
    assert spoken(Answer(raw)).text == "B"


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("", ""),
        ("<think>A</think>", ""),
        ("B <think> is a tag", "B <think> is a tag"),
        ("a < b and c > d", "a < b and c > d"),
        ("\\boxed{1.7\\text{ m}}", "1.7 m"),
        ("\\boxed{\\frac{1}{2}}", "1/2"),
        ("The <|object_ref_start|>cube<|object_ref_end|>", "The  cube"),  # Qwen2-VL
        ("<think>A</think>B\n<think>I am not sure", "B"),
        ("<answer></answer>", ""),
        ("\\boxed{}", ""),
        ("The plan is <plan>pick, place</plan>", "The plan is <plan>pick, place</plan>"),
        ("analysis: A is near", "analysis: A is near"),
        ('{"a": "<think>", "b": "\\"</think>"}', '{"a": "<think>", "b": "\\"</think>"}'),
    ],
)
def test_the_rest_of_a_text_stays(raw: str, answer: str) -> None:
    assert final_answer(raw) == answer
    assert not is_unfinished(raw)


def test_an_empty_answer_that_was_not_cut_off_is_an_answer() -> None:
    assert spoken(Answer("")).text == ""
    with pytest.raises(InvalidAnswerError, match="cut off"):
        spoken(Answer("", truncated=True))
    assert spoken(Answer("red cu", truncated=True)) == Answer("red cu", truncated=True)


PLAIN = st.text(st.characters(exclude_characters="<>[]◁▷\\{}｜\x00", exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=200, deadline=None)
@given(PLAIN, PLAIN)
def test_reasoning_and_end_tokens_leave_any_answer_as_it_is(reasoning: str, answer: str) -> None:
    answer = answer.strip()
    for raw in (f"<think>{reasoning}</think>{answer}<|im_end|>", f"{reasoning}</think>{answer}", f"{answer}</s>more"):
        if answer:
            assert final_answer(raw) == answer
            assert without_reasoning(raw) == answer


@pytest.mark.parametrize(
    "piece",
    [
        "</cot>",
        "</s>",
        "<think>",
        "\\boxed{",
        "<answer>",
        "<think>x</think>",
        '{"a" <think></think>',
        "\\",
        "< ",
        "<|channel|>a",
    ],
)
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    began_s = time.process_time()
    final_answer(piece * (100_000 // len(piece)))
    assert time.process_time() - began_s < 2.0


def test_a_trial_compares_final_answers() -> None:
    local = pytest.importorskip("merton.experiment.local", reason="the extra `sim` is not installed")

    class Reasoning:
        def answer(self, images: object, question: str, max_tokens: int) -> Answer:
            return Answer("<think>The cube is red.</think>Pick it up.<|im_end|>")

    ports = SimpleNamespace(_models={"describe": Reasoning()}, pace=lambda entry: None)
    assert local.LocalPorts.answer(ports, "describe", None, "?", "reference").text == "Pick it up."
