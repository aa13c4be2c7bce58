"""The networks of pyiqa that are trained on opinions: the ten of the paper (section 5.1) that learn, and three more.

The paper fine-tunes with a learning rate of 1e-5 for 50 epochs "under the default settings in pyiqa toolbox". Loss,
optimiser, batch and crop are those of pyiqa's own training options where it has some for the network (TOPIQ, CNNIQA,
DBCNN, HyperIQA, CLIPIQA+, QualiCLIP+). Ours: those of TOPIQ for the others, at the size that the network takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RATE = 1e-5
EPOCHS = 50
"""Section 5.1 of the paper."""
MSE, PLCC = {"MSELoss": 1.0}, {"PLCCLoss": 1.0}


@dataclass(frozen=True)
class Network:
    """A network and its recipe.

    Attributes:
        name: of the metric in Merton.
        description: one line, with the source.
        needs_reference: whether it compares with the undistorted image.
        pyiqa: its name there; "" if it is the same.
        options: of `pyiqa.archs.build_network` besides those that pyiqa has for this name.
        losses: of pyiqa, and their weights.
        optimizer, decay: class of `torch.optim`, and its weight decay.
        cosine: whether the learning rate falls along half a cosine; else it stays.
        batch: images in a step.
        crop_px: side of the square of an image that a step sees, at most.
        least_px: images with a shorter side are enlarged to it, in training and prediction.
        outputs: that mean the worst and the best image; the first is larger where the network gives a distance.
        image_s: about how long a core works on an image in an epoch; tells of progress alone.
    """

    name: str
    description: str
    needs_reference: bool
    pyiqa: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=lambda: MSE)
    optimizer: str = "AdamW"
    decay: float = 1e-5
    cosine: bool = True
    batch: int = 16
    crop_px: int = 384
    least_px: int = 32
    outputs: tuple[float, float] = (0.0, 1.0)
    image_s: float = 1.0


NETWORKS = {
    network.name: network
    for network in (
        Network("ahiq", "attention between features of a transformer and a CNN, Lao et al. 2022", True, batch=8,
                crop_px=224, least_px=224, image_s=8.0),
        Network("ckdn", "degraded references, by knowledge distillation, Zheng et al. 2021", True),
        Network("dists", "structure and texture of VGG's features, Ding et al. 2020", True, outputs=(1.0, 0.0)),
        Network("lpips", "distance of AlexNet's features, Zhang et al. 2018", True, outputs=(1.0, 0.0), image_s=0.2),
        Network("topiq_fr", "semantics guide the comparison of ResNet's features, Chen et al. 2024", True),
        Network("clipiqa+", "CLIP between words that are learned, Wang et al. 2023", False,
                losses=MSE | PLCC, optimizer="Adam", decay=0.0, batch=8, options={"pos_embedding": True}),
        Network("cnniqa-pyiqa", "a small CNN, Kang et al. 2014", False, pyiqa="cnniqa",
                losses=PLCC, optimizer="Adam", decay=0.0, cosine=False, batch=64, image_s=0.05),
        Network("dbcnn", "two CNNs, of synthetic and of authentic distortions, Zhang et al. 2020", False,
                optimizer="Adam", decay=5e-4, cosine=False, batch=8, crop_px=448, options={"fc": False}),
        Network("qualiclip+", "CLIP, aligned with words about quality, Agnolucci et al. 2024", False,
                losses=MSE | PLCC, optimizer="Adam", decay=0.0, batch=8),
        Network("topiq_nr", "semantics guide attention to ResNet's features, Chen et al. 2024", False),
        Network("hyperiqa", "a network that makes another's weights for each image, Su et al. 2020", False,
                losses=PLCC, optimizer="Adam", decay=5e-4, cosine=False, batch=96, crop_px=224, least_px=224),
        Network("maniqa", "attention over a transformer's features, Yang et al. 2022", False, batch=8,
                crop_px=224, least_px=224, image_s=8.0),
        Network("liqe", "CLIP, tuned beside words about quality, Zhang et al. 2023", False, batch=8,
                least_px=224, outputs=(1.0, 5.0), image_s=4.0),
    )
}  # fmt: skip
"""Name to network; the first ten are the paper's."""
