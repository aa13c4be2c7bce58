"""VLMs in this process, by the classes of Hugging Face transformers 5.

Models of `AutoModelForImageTextToText` with a chat template (InternVL3, Qwen2-VL, Qwen2.5-VL, Ovis2, LLaVA). Images
are always prepared by the Pillow versions of the image processors, even with torchvision installed: the two resize
differently, and answers must not depend on the installed packages.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from merton.cognition.models.base import MAX_TOKENS, Answer, ModelEntry, Question, VisionLanguageModel
from merton.errors import InfrastructureError, InputError, MissingDependencyError, require
from merton.models.base import Finding
from merton.models.checkpoints import download, loading, locate, missing_weights, revision_of
from merton.world.observation import Image


class TransformersVlm(VisionLanguageModel):
    """A checkpoint on disk with greedy decoding; in bfloat16 on a GPU, in float32 on a CPU.

    Args:
        name: name in the catalogue.
        checkpoint: a folder or "owner/name" of the hub; must be on this machine already.
        revision: commit of the checkpoint, "" for the newest on this machine.
        prompt: text for the model, with {question}.
        remote_code: run code that comes with the checkpoint; needs a revision.
        device: such as "cuda:1"; "" is the GPU if there is one.
        batch_size: most questions answered at once.
        deadline_s: a batch that takes longer is an infrastructure failure [s].
        chat_template: the form of a prompt, in Jinja over `messages` as transformers has it, for a checkpoint that has
            none, such as PaliGemma's; "" for the checkpoint's own.
    """

    adapter_version = "2"

    def __init__(
        self,
        name: str,
        checkpoint: str,
        revision: str = "",
        prompt: str = "{question}",
        remote_code: bool = False,
        device: str = "",
        batch_size: int = 8,
        deadline_s: float = 120.0,
        chat_template: str = "",
    ) -> None:
        if remote_code and not revision:
            raise InputError(f"{name}: code of {checkpoint} is run only at a pinned revision; name one")
        if batch_size < 1 or not deadline_s > 0:
            raise InputError(f"{name}: batch_size and deadline_s must be positive, got {batch_size} and {deadline_s}")
        self.name = name
        self.checkpoint, self.revision, self.prompt, self.remote_code = checkpoint, revision, prompt, remote_code
        self.batch_size, self.deadline_s, self.chat_template = batch_size, deadline_s, chat_template
        self._device = device
        self._processor: Any = None
        self._model: Any = None

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> TransformersVlm:
        """The model of a catalogue entry; its settings may name device, batch_size, deadline_s and chat_template."""
        return cls(entry.name, entry.checkpoint, entry.revision, entry.prompt, entry.remote_code, **entry.settings)

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """See `VisionLanguageModel.answer`."""
        return self.answer_batch([Question(tuple(images), question, max_tokens)])[0]

    def answer_batch(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer many questions, `batch_size` at a time; in float32 each as alone."""
        for question in questions:
            if not question.images or question.max_tokens < 1:
                raise InputError(f"{self.name} needs an image and room for at least one word piece")
        self._load()
        groups: dict[int, list[int]] = defaultdict(list)
        for index, question in enumerate(questions):
            groups[question.max_tokens].append(index)  # a batch has one limit of tokens
        answers: dict[int, Answer] = {}
        for indices in groups.values():
            for start in range(0, len(indices), self.batch_size):
                some = indices[start : start + self.batch_size]
                answers |= zip(some, self._generate([questions[index] for index in some]), strict=True)
        return [answers[index] for index in range(len(questions))]

    def check(self) -> Iterator[Finding]:
        """Libraries, checkpoint, processor, the prepared example and weights, then the answer to the example."""
        import_torch()
        import transformers

        yield Finding("library", True, f"transformers {transformers.__version__}")
        folder = locate(self.checkpoint, self.revision)
        commit = revision_of(folder)
        yield Finding("checkpoint", True, f"{folder}" + ("" if self.revision or not commit else f" (pin it: {commit})"))
        self._load_processor(folder)
        pictures = self._images
        resample = getattr(pictures, "resample", None)
        yield Finding("processor", True, f"{type(pictures).__name__}, {_filter_name(resample)}, {pictures.size}")
        shapes = {key: tuple(value.shape) for key, value in self._inputs([self.make_example()]).items()}
        yield Finding("example", True, ", ".join(f"{key} {shape}" for key, shape in shapes.items()))
        if missing := missing_weights(folder):
            yield Finding("weights", False, f"missing: {', '.join(missing)}", download(self.checkpoint, self.revision))
            return
        yield from super().check()

    def _load(self) -> None:
        """Processor and weights, once."""
        if self._model is not None:
            return
        torch = import_torch()
        folder = locate(self.checkpoint, self.revision)
        self._load_processor(folder)
        if missing := missing_weights(folder):
            remedy = download(self.checkpoint, self.revision)
            raise MissingDependencyError(f"{self.checkpoint} lacks {', '.join(missing)}: {remedy}")
        import transformers

        device = torch.device(self._device or ("cuda" if torch.cuda.is_available() else "cpu"))
        dtype = torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
        extra = {"trust_remote_code": True} if self.remote_code else {}
        transformers.utils.logging.disable_progress_bar()  # a node's log is no place for it
        with loading(self.name, folder):
            kind: Any = transformers.AutoModelForImageTextToText
            model = kind.from_pretrained(folder, dtype=dtype, local_files_only=True, **extra)
            self._model = model.to(device).eval()

    def _load_processor(self, folder: Path) -> None:
        """Load tokenizer, image processor and the processor that joins them; a few megabytes."""
        if self._processor is not None:
            return
        import transformers
        from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

        extra = {"trust_remote_code": True} if self.remote_code else {}
        here: dict[str, Any] = {"local_files_only": True, **extra}
        try:
            config = transformers.AutoConfig.from_pretrained(folder, **here)
            self._words = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left", **here)
            self._images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **here)
            if type(config) not in PROCESSOR_MAPPING:
                raise InputError(f"{self.name}: transformers has no processor for a {type(config).__name__}")
            processor = _stills_only(PROCESSOR_MAPPING[type(config)], self._images, self._words, folder)
        except ImportError as error:
            raise MissingDependencyError(f"{self.name}: {_first_line(error)}") from None
        except InputError:
            raise
        except (OSError, ValueError) as error:
            raise MissingDependencyError(
                f"{self.name}: {folder} is no checkpoint to load: {_first_line(error)}"
            ) from None
        templates = (self.chat_template, getattr(processor, "chat_template", None), self._words.chat_template)
        if not any(templates):
            raise InputError(
                f"{self.name}: the checkpoint in {folder} has no chat template: write the form of its prompt as "
                "chat_template into the settings of the entry, in Jinja, as its model card shows it"
            )
        self._processor = processor

    def _inputs(self, questions: Sequence[Question]) -> Any:
        """The arguments of the model's `generate`."""
        from PIL import Image as Pillow

        images = [[Pillow.fromarray(image) for image in question.images] for question in questions]
        texts = [
            self._processor.apply_chat_template(
                [{"role": "user", "content": [*[{"type": "image"}] * len(some), {"type": "text", "text": text}]}],
                tokenize=False,
                add_generation_prompt=True,
                **({"chat_template": self.chat_template} if self.chat_template else {}),
            )
            for some, text in zip(images, (self._prompted(question) for question in questions), strict=True)
        ]
        return self._processor(images=images, text=texts, padding=True, return_tensors="pt")

    def _prompted(self, question: Question) -> str:
        return self.prompt.replace("{question}", question.text)

    def _generate(self, questions: Sequence[Question]) -> list[Answer]:
        """Answers to questions with equal `max_tokens`."""
        import torch

        started = time.perf_counter()
        model, limit = self._model, questions[0].max_tokens
        inputs = {key: value.to(model.device) for key, value in self._inputs(questions).items()}
        for key, value in inputs.items():
            if value.is_floating_point():
                inputs[key] = value.to(model.dtype)
        prompt_length = inputs["input_ids"].shape[1]
        greedy = {"do_sample": False, "num_beams": 1, "temperature": None, "top_p": None, "top_k": None}
        try:
            with torch.inference_mode():
                written = model.generate(**inputs, max_new_tokens=limit, max_time=self.deadline_s, **greedy)
        except torch.cuda.OutOfMemoryError as error:
            raise InfrastructureError(f"{self.name}: out of GPU memory for {len(questions)} questions") from error
        latency_s = time.perf_counter() - started
        if latency_s > self.deadline_s:
            raise InfrastructureError(f"{self.name} took {latency_s:.1f} s, more than its {self.deadline_s:g} s")
        new = written[:, prompt_length:]
        ends = model.generation_config.eos_token_id
        ended = torch.isin(new, torch.tensor(ends if isinstance(ends, list) else [ends], device=new.device)).any(dim=1)
        texts = self._words.batch_decode(new, skip_special_tokens=True)
        return [
            Answer(text.strip(), latency_s / len(questions), truncated=not bool(done))
            for text, done in zip(texts, ended, strict=True)
        ]


def import_torch() -> Any:
    """The torch module; raises MissingDependencyError if it or transformers is not installed."""
    torch = require("torch", "models", "a VLM in this process")
    require("transformers", "models", "a VLM in this process")
    return torch


def _stills_only(kind: Any, images: Any, words: Any, folder: Path) -> Any:
    """A processor of class `kind` without its video part, whose import needs torchvision.

    Some classes, such as SmolVLM's, look up the rate of videos for every prompt: that of the missing part is None.
    """

    class StillsOnly(kind):
        @classmethod
        def _get_arguments_from_pretrained(cls, *_: Any, **__: Any) -> list[Any]:
            parts = {"image_processor": images, "tokenizer": words}
            return [parts.get(attribute) for attribute in cls.get_attributes()]

        def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
            if argument is not None:
                return super().check_argument_for_proper_class(argument_name, argument)
            return type(None)

    processor = StillsOnly.from_pretrained(folder, local_files_only=True)
    if "video_processor" in kind.get_attributes() and getattr(processor, "video_processor", None) is None:
        processor.video_processor = SimpleNamespace(num_frames=None, fps=None)
    return processor


def _filter_name(resample: Any) -> str:
    from PIL import Image as Pillow

    return "no resizing" if resample is None else Pillow.Resampling(int(resample)).name.lower()


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
