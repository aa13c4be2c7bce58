"""Metrics of image quality, with or without a reference image: one registry, `METRICS`.

`psnr`, `ssim`, `ms_ssim`, `blur_effect` and `noise_sigma` need OpenCV alone; `vif` is torchmetrics' and needs the extra
`quality`. `learned` holds metrics that are trained on opinions.
"""

from merton.perception.quality.registry import METRICS, Metric, measure, no_reference_metrics

__all__ = ["METRICS", "Metric", "fidelity", "learned", "measure", "no_reference_metrics", "pairs"]
