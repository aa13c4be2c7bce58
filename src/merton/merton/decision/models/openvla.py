"""OpenVLA and related models in this process, by `predict_action` of the code in their checkpoint.

That code needs transformers 4.40.1 and timm 0.9, which exclude the rest of Merton's models: use it in a separate
environment, or put the model behind a server and use the adapter openvla_rest. As code from the checkpoint is run, the
catalogue entry must allow it (`remote_code: true`) and pin the revision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from merton.decision.models.action_tokens import ActionTokens
from merton.decision.models.base import Policy, PolicyEntry
from merton.decision.models.conventions import Convention, Statistics
from merton.decision.models.images import prepared
from merton.errors import InputError, InvalidActionError, MissingDependencyError, require
from merton.models.base import Finding
from merton.models.catalogue import ImagePreparation
from merton.models.checkpoints import check_files, loading, locate, revision_of
from merton.world.action import ActionChunk
from merton.world.observation import Observation

Loaded = tuple[Any, Any]
"""(processor, model): `processor(text, image)` gives tensors, `model.predict_action(**tensors, ...)` an action."""


class OpenVla(Policy):
    """One camera, one action (7,) a call; greedy, so that equal images give equal actions.

    Args:
        name: name in the catalogue.
        checkpoint, revision: see `merton.models.checkpoints.locate`.
        convention: the meaning of the seven numbers.
        unnorm_key: data set whose statistics un-normalise them.
        camera: the view that is sent.
        prompt: text with {instruction}.
        image: preparation of the image by the adapter, before the checkpoint's own processor.
        chain_tokens: token limit of a model that writes a chain of thought; 0 for other models.
        load: gives processor and model of a folder.
    """

    adapter_version = "2"

    def __init__(
        self,
        name: str,
        checkpoint: str,
        revision: str,
        convention: Convention,
        unnorm_key: str,
        camera: str = "top",
        prompt: str = "In: What action should the robot take to {instruction}?\nOut:",
        image: ImagePreparation | None = None,
        chain_tokens: int = 0,
        load: Callable[[Path], Loaded] | None = None,
    ) -> None:
        self.name, self.cameras = name, (camera,)
        self.checkpoint, self.revision = checkpoint, revision
        self._convention, self._unnorm_key, self._prompt = convention, unnorm_key, prompt
        self._image, self._chain_tokens = image or ImagePreparation(), chain_tokens
        self._load = load or load_remote_code
        self._loaded: Loaded | None = None

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> OpenVla:
        """The policy of a catalogue entry; raises InputError if it does not agree to run the checkpoint's code."""
        if not entry.remote_code:
            raise InputError(f"{entry.name}: its adapter runs code of the checkpoint; agree with remote_code: true")
        convention = entry.means
        if len(entry.cameras) != 1 or convention is None or not entry.unnorm_key:
            raise InputError(f"{entry.name}: openvla takes one camera, and needs a convention and an unnorm_key")
        policy = (convention, entry.unnorm_key, entry.cameras[0], entry.prompt, entry.image)
        return cls(entry.name, entry.checkpoint, entry.revision, *policy, **entry.settings)

    def act(self, observation: Observation) -> ActionChunk:
        """One action, converted; never done.

        Raises:
            InputError: the view is missing.
            InvalidActionError: no usable action, or a chain of thought that was cut off.
            MissingDependencyError: see `load_remote_code`.
        """
        started = time.perf_counter()
        self.require_views(observation)
        processor, model = self._ready()
        text = self._prompt.replace("{instruction}", observation.instruction.lower())
        inputs = processor(text, prepared(observation.views[self.cameras[0]].color, self._image))
        more = {"max_new_tokens": self._chain_tokens} if self._chain_tokens else {}
        result = model.predict_action(**inputs, unnorm_key=self._unnorm_key, do_sample=False, **more)
        if self._chain_tokens and not isinstance(result, tuple):
            raise InvalidActionError(
                f"{self.name} gave no tokens with its action, so a chain cut off cannot be detected"
            )
        raw = self._from_chain(model, result[1]) if self._chain_tokens else result
        return self._convention.chunk(raw, model=self.name, latency_s=time.perf_counter() - started)

    def check(self) -> Iterator[Finding]:
        """Checkpoint and weights, then an action on the example."""
        findings = check_files(self.checkpoint, self.revision)
        yield from findings
        if all(finding.ok for finding in findings):
            yield from super().check()

    def _ready(self) -> Loaded:
        if self._loaded is None:
            folder = locate(self.checkpoint, self.revision)
            if revision_of(folder) not in ("", self.revision):
                raise InputError(f"{folder} is not the revision {self.revision} that was agreed to")
            with loading(self.name, folder):
                self._loaded = self._load(folder)
        return self._loaded

    def _from_chain(self, model: Any, tokens: Any) -> Any:
        """The un-normalised action at the end of a chain of thought."""
        ids = tokens.cpu().numpy() if hasattr(tokens, "cpu") else np.asarray(tokens)
        normalised = ActionTokens(int(model.vocab_size)).at_the_end(ids)
        return Statistics.of(model.norm_stats[self._unnorm_key]["action"]).from_quantiles(normalised)


def load_remote_code(folder: Path) -> Loaded:
    """Processor and model by the code in the checkpoint's folder, on the GPU in bfloat16 if there is one.

    Raises:
        MissingDependencyError: transformers is missing, or too new for that code.
    """
    torch = require("torch", "models", "OpenVLA")
    transformers = require("transformers", "models", "OpenVLA")
    kind = getattr(transformers, "AutoModelForVision2Seq", None)
    if kind is None:
        raise MissingDependencyError(
            f"OpenVLA's own code wants transformers 4.40.1, here is {transformers.__version__}: use an environment of "
            "its own, or serve it and use the adapter openvla_rest (docs/use/models.md)"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    local: dict[str, Any] = {"trust_remote_code": True, "local_files_only": True}
    processor = transformers.AutoProcessor.from_pretrained(folder, **local)
    model = kind.from_pretrained(folder, torch_dtype=dtype, low_cpu_mem_usage=True, **local).to(device).eval()
    return (lambda text, image: processor(text, image).to(device, dtype=dtype)), model
