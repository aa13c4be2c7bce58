"""VLMs behind a server that speaks OpenAI's chat protocol: vLLM, SGLang, llama.cpp or `merton model serve`.

Ours: httpx2 rather than the `openai` package. A request is one POST; retries, deadline and the rest for a dead server
are those of `merton.models.remote`, the same for every protocol.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated, Any

import cv2
from pydantic import Field

from merton.cognition.models.base import MAX_TOKENS, Answer, ModelEntry, Question, VisionLanguageModel, sendable
from merton.config import Model, validated
from merton.errors import InfrastructureError, InputError, InvalidAnswerError, LateAnswerError
from merton.models.base import Finding
from merton.models.catalogue import ImagePreparation
from merton.models.redaction import without_key
from merton.models.remote import HttpServer, Patience, Reply, TransientError, check_server, code_of
from merton.results.text import one_line
from merton.world.observation import Image

BROKEN = ("error", "abort")
"""Values of finish_reason of an answer that the server did not finish: OpenRouter's, and those of vLLM and SGLang."""
TOOLS = ("tool_calls", "function_call")
"""Values of finish_reason of an answer that calls a tool, though none is offered."""
TEXTS = ("text", "output_text")
"""Types of the parts of a content that are words of the answer."""


class ChatSettings(Model):
    """The settings of a catalogue entry.

    Attributes:
        url: common prefix of the API's addresses, usually with /v1.
        model: the server's name of the model; the entry's checkpoint if empty.
        api_key_env: environment variable with the API key; "" for servers without one. The key is read at each call and
            appears in no file, log or error.
        seed: sent with every question that has none; at temperature 0 only servers that break ties at random use it.
        body: further fields of the request, or other values for the usual ones; null leaves a field out.
        parallel: most questions of a batch that are under way at once.
        patience: deadline and retries.
    """

    url: str = "http://127.0.0.1:8000/v1"
    model: str = ""
    api_key_env: str = ""
    seed: int = 0
    body: Mapping[str, Any] = {}
    parallel: Annotated[int, Field(ge=1, le=256)] = 8
    patience: Patience = Patience()


class OpenAIChat(VisionLanguageModel):
    """A client that sends images as PNG, at temperature 0 unless a question has another.

    Args:
        name: name in the catalogue.
        chosen: address of the server, and fields of the request.
        prompt: text with {question} in it.
        must_see: whether the check requires an answer about a picture; else a model of text alone passes it, since
            that is enough for the roles of a curation.

    Raises:
        MissingDependencyError: the extra `remote` is not installed.
        InputError: not an address.
    """

    adapter_version = "2"
    is_chat = True

    def __init__(self, name: str, chosen: ChatSettings, prompt: str = "{question}", must_see: bool = False) -> None:
        self.name, self._chosen, self._prompt, self._must_see = name, chosen, prompt, must_see
        self.parallel = chosen.parallel
        self._server = HttpServer(chosen.url, chosen.patience)

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> OpenAIChat:
        """The model of a catalogue entry; raises InputError for unknown settings.

        An entry that says how its pictures are prepared is that of a model which must see.
        """
        chosen = validated(ChatSettings, dict(entry.settings), f"the settings of {entry.name}")
        if not chosen.model:
            chosen = chosen.model_copy(update={"model": entry.checkpoint})
        return cls(entry.name, chosen, entry.prompt, must_see=entry.image != ImagePreparation())

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """The model's answer, with the latency of the whole call; an empty text is an answer, and null is none.

        Images are sent as PNG, because JPEG would distort them once more. Without images the question is text alone.

        Raises:
            InvalidAnswerError: the model failed behind its server, or its answer is no text or not there.
            InfrastructureError: no key, or no answer within the deadline and the attempts; the text lists the attempts.
        """
        return self._ask(Question(tuple(images), question, max_tokens))

    def _ask(self, question: Question) -> Answer:
        """The answer to a question; raises as `answer` does."""
        started = time.perf_counter()
        content: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": png_url(image)}} for image in question.images
        ]
        content.append({"type": "text", "text": self._prompt.replace("{question}", question.text)})
        body: dict[str, Any] = {
            "model": self._chosen.model,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": question.max_tokens,
            "temperature": question.temperature,
            "seed": self._chosen.seed if question.seed is None else question.seed,
        }
        body = {key: value for key, value in {**body, **self._chosen.body}.items() if value is not None}
        headers = self._headers()

        async def attempt() -> tuple[str, bool]:
            reply = await self._server.request("POST", "/chat/completions", body, headers)
            return self._read(reply)

        text, truncated = self._call(attempt, headers)
        return Answer(text, time.perf_counter() - started, truncated)

    def answer_batch(self, questions: Sequence[Question]) -> list[Answer | Exception]:
        """As `answer`, several at once, since a server with internal batching is only fast this way.

        The result of a question is its `Answer` or the exception that `answer` raised: one failed request does not lose
        the answers to the others, which may have a price.
        """

        def ask(one: Question) -> Answer | Exception:
            try:
                return self._ask(one)
            except Exception as error:
                return error

        started = time.perf_counter()
        with ThreadPoolExecutor(self._chosen.parallel) as pool:
            outcomes = list(pool.map(ask, questions))
        each_s = (time.perf_counter() - started) / max(1, len(outcomes))
        return [replace(one, latency_s=each_s) if isinstance(one, Answer) else one for one in outcomes]

    def check(self) -> Iterator[Finding]:
        """The key, the server, its list of models, and the answer to the example, or to one without its picture."""
        return check_server(self._findings())

    def _findings(self) -> Iterator[Finding]:
        headers = self._headers()
        served = self._call(lambda: self._served(headers), headers)
        known = self._chosen.model in served
        remedy = "" if known else f"set `model` to one of: {', '.join(served)}"
        yield Finding("server", known, f"{self._server.url} serves {', '.join(served)}", remedy)
        try:
            yield from super().check()
        except LateAnswerError as error:
            yield Finding("example", False, str(error), "set a longer patience.deadline_s in its entry")
        except InfrastructureError as error:  # the server is there: it has named its models
            yield from self._without_a_picture(str(error))

    def _without_a_picture(self, refusal: str) -> Iterator[Finding]:
        """The findings of a model whose server refuses the example, which has a picture, for some reason."""
        started = time.perf_counter()
        try:
            answer = self._ask(replace(self.make_example(), images=()))
        except (InfrastructureError, InvalidAnswerError):
            remedy = "the server's own log may say more"
            yield Finding("example", False, f"no answer, with a picture or without one: {refusal}", remedy)
            return
        milliseconds = 1000 * (time.perf_counter() - started)
        yield Finding("example", True, f"text alone: {self.summary(answer)} in {milliseconds:.0f} ms")
        remedy = (
            "start the server with the model's part for pictures (of llama.cpp: --mmproj)"
            if self._must_see
            else "so it can take roles of `merton curate` and judge answers, and cannot be asked about pictures"
        )
        yield Finding("pictures", not self._must_see, f"it does not answer about pictures: {refusal}", remedy)

    async def _served(self, headers: dict[str, str]) -> list[str]:
        reply = (await self._server.request("GET", "/models", headers=headers)).json()
        try:
            return [str(model["id"]) for model in reply["data"]]
        except (TypeError, KeyError):
            raise InfrastructureError(f"{self._server.url}/models is no list of models") from None

    def _headers(self) -> dict[str, str]:
        variable = self._chosen.api_key_env
        if not variable:
            return {}
        key = os.environ.get(variable, "").strip()
        if not (key and key.isascii() and key.isprintable()):
            raise InfrastructureError(f"{self.name} needs its API key in the environment variable {variable}")
        return {"authorization": f"Bearer {key}"}

    def _call(self, attempt: Any, headers: dict[str, str]) -> Any:
        """Call the server; a key that the server quotes in an error is cut out."""
        try:
            return self._server.call(attempt)
        except (InfrastructureError, InvalidAnswerError) as error:
            key = headers.get("authorization", "").partition(" ")[2]
            shown = without_key(str(error).encode("utf-8", "replace"), key).decode()
            if shown != str(error):
                raise type(error)(shown) from None
            raise

    def _read(self, reply: Reply) -> tuple[str, bool]:
        """The text of an answer, and whether it was cut off.

        A refusal in words of the content is an answer as any other.
        """
        body = reply.value() if reply.status in (200, 500) else None
        error = body.get("error") if isinstance(body, dict) else None
        if isinstance(error, dict) and error.get("type") == "model_error":  # from `merton model serve`
            raise InvalidAnswerError(f"{self.name} failed behind {self._server.url}: {error.get('message')}")
        value = reply.json()
        try:
            choice = value["choices"][0]
            if fault := choice.get("error"):  # of the server that a gateway asks
                reply.refuse(code_of(fault) or 400, "an error in place of an answer")
            message, finish = choice["message"], choice.get("finish_reason")
            content, refusal = message["content"], message.get("refusal")
        except (TypeError, KeyError, IndexError, AttributeError):
            raise InfrastructureError(f"{self._server.url} replies, but not as chat does: {reply.excerpt()}") from None
        if finish in BROKEN:
            raise TransientError(f"the answer ended with finish_reason {finish!r}: {reply.excerpt()}")
        if isinstance(content, list):
            content = _text_of(content)
        has_words = isinstance(content, str) and bool(content.strip())
        if finish == "content_filter" or (finish in TOOLS and not has_words):
            raise InvalidAnswerError(f"{self.name} gave no whole answer: its finish_reason is {finish!r}")
        if refusal and not has_words:
            raise InvalidAnswerError(f"{self.name} refused: {one_line(refusal, 300)}")
        is_cut = finish == "length"
        if content is None:
            why = ": max_tokens was used up before its first word" if is_cut else ""
            raise InvalidAnswerError(f"the answer of {self.name} is not there, content is null or has no text{why}")
        if not isinstance(content, str):
            raise InvalidAnswerError(f"the answer of {self.name} is no text but a {type(content).__name__}")
        return sendable(content).strip(), is_cut


def _text_of(parts: list[Any]) -> object:
    """The text of a content in parts, of which reasoning, images and others are no words; None without a text."""
    texts = [
        part["text"]
        for part in parts
        if isinstance(part, dict) and part.get("type", "text") in TEXTS and part.get("text") is not None
    ]
    if not texts:
        return None
    return "".join(texts) if all(isinstance(text, str) for text in texts) else texts


def png_url(image: Image) -> str:
    """An image (height, width, 3) uint8 RGB as a data: address."""
    # OpenCV's default (run lengths only) gives the size of level 1 and is twice as fast
    encoded, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    if not encoded:
        raise InputError(f"cannot encode an image of shape {image.shape}")
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()
