"""The chat adapter against servers that behave and servers that do not, and against `merton model serve`."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import cv2
import numpy as np
import pytest

from merton.cognition.models.base import ModelEntry, Question, example_question
from merton.cognition.models.openai_chat import ChatSettings, OpenAIChat
from merton.errors import InfrastructureError, InputError, InvalidAnswerError
from merton.models.catalogue import ImagePreparation, examine
from merton.models.remote import Patience
from patience import stretched
from wire import LIMIT_S, Wire, closed_port, half_closed, http_server, replying, silent

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

IMAGE = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)


def saying(content: Any, finish_reason: str = "stop") -> Any:
    message = {"role": "assistant", "content": content}
    return replying(200, {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})


def ending(finish_reason: str, **message: Any) -> Any:
    return replying(200, {"choices": [{"message": {"content": "", **message}, "finish_reason": finish_reason}]})


def chat(wire: Wire, **chosen: Any) -> OpenAIChat:
    patience = chosen.pop("patience", Patience(deadline_s=LIMIT_S, pause_s=0.01))
    values = {"url": wire.http + "/v1", "model": "eyes-7b", "patience": patience, **chosen}
    return OpenAIChat("eyes", ChatSettings(**values), "Look. {question}")


def test_the_question_as_it_goes_over_the_wire() -> None:
    with http_server(saying(" Red cube left. ")) as wire:
        answer = chat(wire).answer([IMAGE, IMAGE[::-1]], "What is where?", 17)
    assert (answer.text, answer.truncated) == ("Red cube left.", False)
    assert answer.latency_s > 0
    (request,) = wire.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert "authorization" not in request.headers
    (message,) = request.body.pop("messages")
    assert request.body == {"model": "eyes-7b", "max_tokens": 17, "temperature": 0, "seed": 0}
    *pictures, text = message["content"]
    assert text == {"type": "text", "text": "Look. What is where?"}
    for picture, image in zip(pictures, (IMAGE, IMAGE[::-1]), strict=True):
        head, _, data = picture["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        seen = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
        assert np.array_equal(seen, image), "PNG keeps every pixel"


def test_further_fields_and_fields_left_out() -> None:
    with http_server(saying("yes")) as wire:
        body = {"max_tokens": None, "max_completion_tokens": 99, "temperature": 1}
        chat(wire, body=body).answer([IMAGE], "?")
    sent = wire.requests[0].body
    assert "max_tokens" not in sent
    assert (sent["max_completion_tokens"], sent["temperature"]) == (99, 1)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        ("  \n", ""),
        ([{"type": "text", "text": "Red "}, {"type": "text", "text": "cube"}], "Red cube"),
        ("red\ud800 \0cube", "red? cube"),
        ([{"type": "reasoning", "text": "thinking"}, {"type": "text", "text": "B"}], "B"),
        ([{"type": "output_text", "text": "B"}], "B"),
        ([{"text": "B"}, {"type": "image", "text": "C"}], "B"),
    ],
)
def test_an_empty_reply_is_an_answer(content: Any, text: str) -> None:
    with http_server(saying(content)) as wire:
        assert chat(wire).answer([IMAGE], "?").text == text


@pytest.mark.parametrize("step", [ending("stop", content="I cannot.", refusal="no"), ending("tool_calls", content="B")])
def test_words_in_the_content_are_an_answer_whatever_is_beside_them(step: Any) -> None:
    with http_server(step) as wire:
        assert chat(wire).answer([IMAGE], "?").text in ("I cannot.", "B")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (ending("content_filter"), "content_filter"),
        (ending("content_filter", content="The red"), "content_filter"),
        (ending("tool_calls"), "tool_calls"),
        (ending("function_call", content=None), "function_call"),
        (ending("stop", refusal="I cannot help with that."), "I cannot help with that"),
        (ending("stop", content=None, refusal="I cannot help with that."), "I cannot help with that"),
        (ending("stop", content=[{"type": "image"}]), "not there"),
        (ending("stop", content=[{"type": "reasoning", "text": "thinking"}]), "not there"),
    ],
)
def test_a_reply_without_a_whole_answer_is_none_and_says_why(step: Any, reason: str) -> None:
    """The values of OpenAI's API reference: finish_reason, and `refusal` beside the content."""
    with http_server(step) as wire:
        with pytest.raises(InvalidAnswerError, match=reason):
            chat(wire).answer([IMAGE], "?")
        assert len(wire.requests) == 1


@pytest.mark.parametrize("finish_reason", ["error", "abort"])
def test_an_answer_that_the_server_broke_off_is_asked_for_again(finish_reason: str) -> None:
    with http_server(ending(finish_reason, content="The red"), saying("B")) as wire:
        assert chat(wire).answer([IMAGE], "?").text == "B"
    with http_server(ending(finish_reason)) as wire, pytest.raises(InfrastructureError, match=finish_reason):
        chat(wire).answer([IMAGE], "?")


def test_an_answer_that_was_cut_off_is_marked() -> None:
    with http_server(saying("The red cube is", "length")) as wire:
        assert chat(wire).answer([IMAGE], "?").truncated


@pytest.mark.parametrize(
    "step",
    [
        saying(7),
        saying([{"type": "text", "text": 7}]),
        saying(None),
        saying([], "length"),
        replying(200, {"error": {"message": "RuntimeError: weights", "type": "model_error"}}),
        replying(500, {"error": {"message": "RuntimeError: weights", "type": "model_error"}}),
    ],
    ids=["no text", "a part without text", "null", "no part", "the model failed, 200", "the model failed"],
)
def test_the_models_own_failure_is_no_fault_of_the_server(step: Any) -> None:
    with http_server(step) as wire:
        with pytest.raises(InvalidAnswerError, match="eyes"):
            chat(wire).answer([IMAGE], "?")
        assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "step",
    [
        replying(200, {"choices": []}),
        replying(200, [1]),
        replying(200, b"\xff"),
        replying(429, "later"),
        replying(500, {"error": {"type": "server_error"}}),
        replying(404, {"error": {"message": "no model eyes-7b"}}),
        replying(200, {"choices": [{"error": {"code": 502}, "message": {"content": ""}, "finish_reason": "error"}]}),
        half_closed,
    ],
    ids=["no choice", "a list", "garbage", "429", "500", "404", "an error in place of an answer", "half closed"],
)
def test_faults_of_the_server_are_never_an_answer(step: Any) -> None:
    with http_server(step) as wire, pytest.raises(InfrastructureError, match=r"127\.0\.0\.1"):
        chat(wire).answer([IMAGE], "?")


def test_slow_and_absent_servers() -> None:
    with http_server(silent) as wire, pytest.raises(InfrastructureError, match="within the deadline"):
        chat(wire, patience=Patience(deadline_s=0.3)).answer([IMAGE], "?")
    with pytest.raises(InfrastructureError, match="3 times ConnectError"):
        chat(Wire(closed_port())).answer([IMAGE], "?")


def test_the_key_comes_from_the_environment_and_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYES_KEY", "sk-very-secret\n")
    with http_server(saying("yes"), replying(401, {"error": "wrong key: sk-very-secret"})) as wire:
        model = chat(wire, api_key_env="EYES_KEY")
        assert model.answer([IMAGE], "?").text == "yes"
        assert wire.requests[0].headers["authorization"] == "Bearer sk-very-secret"
        with pytest.raises(InfrastructureError, match=r"HTTP 401.*<the key>") as refused:
            model.answer([IMAGE], "?")
        assert "sk-very" not in str(refused.value)
        assert "sk-very" not in str(vars(model))
        monkeypatch.delenv("EYES_KEY")
        with pytest.raises(InfrastructureError, match="its API key in the environment variable EYES_KEY"):
            model.answer([IMAGE], "?")


@pytest.mark.parametrize("before", [0, 270, 285, 298, 590, 596])
@pytest.mark.parametrize("key", ["sk-very-secret-0123456789", "sk/with+signs/0123456789=="])
def test_no_part_of_the_key_is_in_an_excerpt_that_ends_within_it(
    monkeypatch: pytest.MonkeyPatch, before: int, key: str
) -> None:
    """The excerpt has 300 characters of 600 bytes: a key across either border was printed but for its last ones."""
    monkeypatch.setenv("EYES_KEY", key)
    for echoed in (key, key.replace("/", "\\/"), quote(key, safe="")):
        body = b"." * min(before, 290) + b" " * max(before - 290, 0) + echoed.encode() + b" is wrong"
        with http_server(replying(401, body)) as wire, pytest.raises(InfrastructureError) as refused:
            chat(wire, api_key_env="EYES_KEY").answer([IMAGE], "?")
        assert not any(key[:size] in str(refused.value) for size in range(4, len(key)))


def test_an_answer_with_the_word_that_is_the_key_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYES_KEY", "none")  # as local servers are given
    with http_server(saying("there is none left")) as wire:
        assert chat(wire, api_key_env="EYES_KEY").answer([IMAGE], "?").text == "there is none left"


def test_a_batch_is_asked_at_once_and_answered_in_order() -> None:
    together = 4

    def echo(connection: Any, wire: Wire) -> None:
        if len(wire.requests) >= together:
            wire.ended.set()
        assert wire.ended.wait(LIMIT_S), "the questions did not come at once"
        saying(wire.requests[-1].body["messages"][0]["content"][-1]["text"])(connection, wire)

    with http_server(echo) as wire:
        questions = [Question((IMAGE,), f"{number}?") for number in range(together)]
        answers = chat(wire, parallel=together).answer_batch(questions)
        assert len(answers) == together
    with http_server(*[saying(str(number)) for number in range(3)]) as wire:
        assert [one.text for one in chat(wire, parallel=1).answer_batch(questions[:3])] == ["0", "1", "2"]
        assert chat(wire).answer_batch([]) == []


def test_a_request_that_fails_loses_no_other_of_its_batch() -> None:
    failed = replying(500, {"error": {"type": "server_error"}})
    said_nothing = replying(200, {"choices": [{"message": {"content": 7}}]})
    with http_server(saying("0"), failed, saying("2"), said_nothing, saying("4")) as wire:
        model = chat(wire, parallel=1, patience=Patience(attempts=1, deadline_s=LIMIT_S))
        outcomes = model.answer_batch([Question((IMAGE,), f"{number}?") for number in range(5)])
        assert len(wire.requests) == 5
    assert [one.text for one in outcomes[::2]] == ["0", "2", "4"]
    assert isinstance(outcomes[1], InfrastructureError)
    assert isinstance(outcomes[3], InvalidAnswerError)


def test_from_the_catalogue() -> None:
    entry = ModelEntry(
        name="eyes",
        description="",
        adapter="openai_chat",
        checkpoint="lab/eyes-7b",
        unpinned="ours",
        prompt="Look. {question}",
        settings={"url": "http://127.0.0.1:1/v1", "patience": {"deadline_s": 5}},
    )
    model = OpenAIChat.from_entry(entry)
    assert model.make_example().text == example_question().text
    with pytest.raises(InputError, match=r"the settings of eyes: adress: unknown key; .*valid keys are: url, model"):
        OpenAIChat.from_entry(entry.model_copy(update={"settings": {"adress": "x"}}))


def test_a_question_without_images_and_with_its_own_sampling() -> None:
    with http_server(saying("yes")) as wire:
        model = chat(wire, seed=7)
        assert model.answer([], "Which?").text == "yes"
        model.answer_batch([Question((), "Which?", 9, temperature=0.7, seed=3), Question((), "Which?", 9)])
    sampling = sorted((one.body["temperature"], one.body["seed"]) for one in wire.requests)
    assert sampling == [(0, 7), (0, 7), (0.7, 3)]
    assert wire.requests[0].body["messages"][0]["content"] == [{"type": "text", "text": "Look. Which?"}]


SERVED = replying(200, {"object": "list", "data": [{"id": "eyes-7b"}]})
# what llama.cpp's server says without a projector: status 500
NO_PICTURES = replying(500, {"error": {"code": 500, "message": "image input is not supported", "type": "server_error"}})


def reading_text_alone(connection: Any, wire: Wire) -> None:
    """A model of text alone: it refuses every request with a picture."""
    body = wire.requests[-1].body
    content = body["messages"][0]["content"] if body else []
    pictures = any(part["type"] == "image_url" for part in content)
    (SERVED if body is None else NO_PICTURES if pictures else saying("Yes."))(connection, wire)


reading_text_alone.__qualname__ = "replying_to"  # keeps the connection


def test_a_model_of_text_alone_passes_the_check_and_is_named_so() -> None:
    with http_server(reading_text_alone) as wire:
        findings = list(chat(wire).check())
    assert [(one.subject, one.ok) for one in findings] == [("server", True), ("example", True), ("pictures", True)]
    assert "text alone: 'Yes.'" in findings[1].detail
    assert "image input is not supported" in findings[2].detail
    assert "cannot be asked about pictures" in findings[2].remedy


def test_a_catalogued_vlm_that_is_served_without_its_eyes_does_not_pass() -> None:
    entry = ModelEntry(
        name="eyes",
        description="",
        adapter="openai_chat",
        checkpoint="lab/eyes-7b",
        unpinned="ours",
        image=ImagePreparation(size_px=(448, 448), resize="bicubic", by="server"),
    )
    with http_server(reading_text_alone) as wire:
        settings = {"url": wire.http + "/v1", "model": "eyes-7b", "patience": {"deadline_s": LIMIT_S, "pause_s": 0.01}}
        findings = examine(entry.model_copy(update={"settings": settings}))
    assert [(one.subject, one.ok) for one in findings][1:] == [("server", True), ("example", True), ("pictures", False)]
    assert "--mmproj" in findings[-1].remedy


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            replying(500, {"error": {"message": "RuntimeError: weights", "type": "model_error"}}),
            "RuntimeError: weights",
        ),
        (replying(503, "overloaded"), "HTTP 503"),
        (silent, "within the deadline"),
    ],
    ids=["the model fails", "the server fails at text too", "late"],
)
def test_a_model_that_fails_at_the_example_is_no_missing_server(step: Any, words: str) -> None:
    deadline_s = stretched(1.0) if step is silent else LIMIT_S
    with http_server(SERVED, step) as wire:
        findings = list(chat(wire, patience=Patience(deadline_s=deadline_s, pause_s=0.01)).check())
    assert [(one.subject, one.ok) for one in findings] == [("server", True), ("example", False)]
    assert words in findings[1].detail
    assert "serving.md" not in findings[1].remedy


def test_the_check_names_missing_parts() -> None:
    served = replying(200, {"object": "list", "data": [{"id": "eyes-7b"}]})
    with http_server(served, saying("yes")) as wire:
        findings = list(chat(wire).check())
        assert [(one.subject, one.ok) for one in findings] == [("server", True), ("example", True)]
    with http_server(served, saying("yes")) as wire:
        first = next(chat(wire, model="other").check())
        assert not first.ok
        assert "eyes-7b" in first.remedy
    (finding,) = chat(Wire(closed_port())).check()
    assert not finding.ok
    assert "serving.md" in finding.remedy
