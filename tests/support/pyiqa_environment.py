"""A stand-in for the environment where pyiqa is: a small torch network of our own behind pyiqa's names.

Its interpreter is this one, with packages called pyiqa, timm and torchvision before all others. What is tested with it
is Merton's: the trainer, the job, checkpoints, errors. Nothing of pyiqa is in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

FILES = {
    "timm.py": "def create_model(name, pretrained=False):\n    raise OSError('no network')\n",
    "torchvision/__init__.py": "",
    "torchvision/models.py": """
import torch

def vgg16(*, weights=None):
    if weights:
        raise OSError("no network")
    return torch.nn.Conv2d(3, 4, 5)

def list_models(module):
    return ["vgg16"]
""",
    "pyiqa/__init__.py": """
import sys
from types import ModuleType

import torch

__version__ = "stand-in"
# torch's compiler, which is never used, is half of the start of a process: optimisers and determinism import it
for name, content in {
    "_dynamo": {"disable": lambda function, *_, **__: function, "graph_break": lambda *_, **__: None},
    "_inductor": {"config": ModuleType("config")},
}.items():
    module = sys.modules[f"torch.{name}"] = ModuleType(f"torch.{name}")
    vars(module).update(content)
    setattr(torch, name, module)
sys.modules["torch._inductor.config"] = torch._inductor.config
""",
    "pyiqa/archs/__init__.py": """
def build_network(options):
    from pyiqa.archs import networks
    kind = options.pop("type")
    return getattr(networks, kind)(**options)
""",
    "pyiqa/archs/arch_util.py": "def load_pretrained_network(network, path, strict=True):\n    raise OSError('none')\n",
    "pyiqa/archs/clip_model.py": "def load(name, device):\n    raise OSError('no network')\n",
    "pyiqa/archs/networks.py": """
import torch
import torchvision
from pyiqa.archs.arch_util import load_pretrained_network
from pyiqa.archs.clip_model import load

class Alone(torch.nn.Module):
    def __init__(self, pretrained=True):
        super().__init__()
        self.features = torchvision.models.vgg16(weights="some")
        self.score = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
        load_pretrained_network(self, "https://nowhere.example/whole_network.pth")

    def pooled(self, x):
        maps = self.features(x).relu()
        return torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], 1)

    def forward(self, x):
        return self.score(self.pooled(x))

class Beside(Alone):
    def forward(self, x, y):
        return self.score((self.pooled(x) - self.pooled(y)).abs())

class Clip(Alone):
    def __init__(self, pos_embedding=False):
        super().__init__()
        self.clip = [load("RN50", "cpu")]

class Frozen(Alone):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)

class Crashing(Alone):
    def __init__(self):
        import os
        os._exit(9)
""",
    "pyiqa/losses.py": """
import torch

def build_loss(options):
    def plcc(outputs, goals):
        a, b = (torch.nn.functional.normalize(each - each.mean(), dim=0) for each in (outputs, goals))
        return (1 - (a * b).sum()) / 2
    mse = torch.nn.functional.mse_loss
    return {"MSELoss": mse, "PLCCLoss": plcc}[options["type"]]
""",
    "pyiqa/default_model_configs.py": """
KINDS = {"topiq_nr": "Alone", "cnniqa": "Alone", "topiq_fr": "Beside", "dists": "Beside", "clipiqa+": "Clip",
         "ckdn": "Frozen", "lpips": "Crashing"}
DEFAULT_CONFIGS = {name: {"metric_opts": {"type": kind}} for name, kind in KINDS.items()}
""",
}


def write_environment(folder: Path) -> Path:
    """Write the packages and an interpreter that finds them first; returns the interpreter."""
    for name, text in FILES.items():
        file = folder / "packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    interpreter = folder / "python"
    interpreter.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/packages" exec "{sys.executable}" "$@"\n')
    interpreter.chmod(0o755)
    return interpreter
