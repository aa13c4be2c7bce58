"""A server of the metrics of pyiqa, for Merton's catalogue `iqa`; start it in the environment where pyiqa is.

    python -m merton.perception.quality.pyiqa_server [--device cuda] [--port 8763]

Without Merton there: copy this file and merton/models/serving.py into one folder, and run `python pyiqa_server.py`. It
needs pyiqa, its torch, and Pillow. pyiqa has a licence of its own, PolyForm Noncommercial 1.0.0; Merton has none of it.

    GET  /metrics   {"version", "device", "metrics": names}
    POST /measure   {"metric", "create", "call", "images": data: addresses, "references": the same or null}
                    to {"values": number or null, "reasons": text or null, "lower_better"}; an image that fails is null
"""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

try:
    from merton.models import serving
except ImportError:  # copied into one folder
    import serving  # type: ignore[no-redef]


class PyIqa:
    """The metrics of pyiqa, each loaded when it is first asked for.

    Args:
        device: of torch, such as "cuda"; "" for a GPU if there is one.
    """

    def __init__(self, device: str = "") -> None:
        import pyiqa
        import torch

        self._pyiqa, self._torch = pyiqa, torch
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.version = str(getattr(pyiqa, "__version__", "of unknown version"))
        self.names = sorted(pyiqa.list_models())
        self._loaded: dict = {}

    def load(self, metric: str, create: dict) -> Any:
        """The metric, called with (n, 3, height, width) images and references in 0..1, with `lower_better`."""
        key = metric, repr(sorted(create.items()))
        if key not in self._loaded:
            self._loaded[key] = self._pyiqa.create_metric(metric, device=self.device, **create)
        return self._loaded[key]

    def measure(self, loaded: Any, images: list, references: Any, call: dict) -> list:
        """One number for each image, all of one size. Metrics that look at random parts look at the same each time."""
        self._torch.manual_seed(0)
        tensors = [self._tensor(pixels) for pixels in (images, references) if pixels is not None]
        with self._torch.no_grad():
            return [float(value) for value in loaded(*tensors, **call).flatten()]

    def _tensor(self, images: list) -> Any:
        stacked = [self._torch.from_numpy(image.copy()).permute(2, 0, 1) for image in images]
        return self._torch.stack(stacked).float().div(255).to(self.device)


def routes(metrics: Any) -> dict:
    """The routes of a server of `metrics`: an instance of `PyIqa`, or of a class with its members."""
    lock = threading.Lock()

    def listed(_: Any) -> tuple:
        return 200, {"version": metrics.version, "device": metrics.device, "metrics": metrics.names}

    def measured(body: Any) -> tuple:
        if not isinstance(body, dict) or not isinstance(body.get("images"), list):
            raise serving.BadRequest("a request is an object with metric and images")
        name, create, call = body.get("metric"), body.get("create") or {}, body.get("call") or {}
        if name not in metrics.names:
            raise serving.BadRequest(f"there is no metric {name!r} here")
        images = _images(body["images"])
        references = None if body.get("references") is None else _images(body["references"])
        if references is not None and len(references) != len(images):
            raise serving.BadRequest(f"{len(images)} images and {len(references)} references")
        with lock:
            loaded = metrics.load(name, create)
            values, reasons = _each(metrics, loaded, images, references, call)
        return 200, {"values": values, "reasons": reasons, "lower_better": bool(loaded.lower_better)}

    return {("GET", "/healthz"): lambda _: (200, "OK"), ("GET", "/metrics"): listed, ("POST", "/measure"): measured}


def _each(metrics: Any, loaded: Any, images: list, references: Any, call: dict) -> tuple:
    """Values and reasons: all at once if the images have one size and none fails, else one by one."""
    if len(images) > 1 and len({image.shape for image in images}) == 1:
        try:
            values = metrics.measure(loaded, images, references, call)
            if len(values) == len(images):
                return values, [None] * len(images)
        except Exception as error:  # Q-Align takes one image at a time, others may be short of memory
            print(f"a batch of {len(images)} failed, now one by one: {error}", file=sys.stderr, flush=True)
    values = []
    reasons: list = []
    for number, image in enumerate(images):
        try:
            pair = None if references is None else [references[number]]
            values += metrics.measure(loaded, [image], pair, call)
            reasons.append(None)
        except Exception as error:
            values.append(None)
            reasons.append(f"{type(error).__name__}: {error}")
    return values, reasons


def _images(addresses: list) -> list:
    images: list = []
    for address in addresses:
        taken_px = sum(image.shape[0] * image.shape[1] for image in images)
        images.append(serving.image_at(address, serving.LARGEST_IMAGE_PX - taken_px))
    return images


def main(arguments: Any = None) -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="Serve the metrics of pyiqa.")
    parser.add_argument("--device", default="", help="such as cuda or cpu; by default a GPU if there is one")
    parser.add_argument("--host", default="127.0.0.1", help="nothing but loopback is private")
    parser.add_argument("--port", type=int, default=8763)
    chosen = parser.parse_args(arguments)
    try:
        metrics = PyIqa(chosen.device)
    except ImportError as error:
        print(f"pyiqa_server: {error.name} is not installed in this environment: pip install pyiqa", file=sys.stderr)
        return 2
    try:
        server = serving.Http(routes(metrics), chosen.host, chosen.port)
    except OSError as error:
        print(f"pyiqa_server: cannot listen on {chosen.host} port {chosen.port}: {error}", file=sys.stderr)
        return 2
    print(f"pyiqa {metrics.version} on {metrics.device} at http://{chosen.host}:{server.port}", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
