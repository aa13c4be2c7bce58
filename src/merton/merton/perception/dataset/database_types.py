"""Types of distortion of published databases, by their own numbers from 1 on; names are ours after their papers."""

from __future__ import annotations

from typing import NamedTuple

TID2013 = (
    "gaussian_noise", "color_noise", "correlated_noise", "masked_noise", "high_frequency_noise", "impulse_noise",
    "quantization_noise", "gaussian_blur", "denoising", "jpeg", "jpeg2000", "jpeg_transmission_errors",
    "jpeg2000_transmission_errors", "pattern_noise", "local_blocks", "mean_shift", "contrast_change",
    "saturation_change", "multiplicative_noise", "comfort_noise", "compression_of_noise", "dithered_quantization",
    "chromatic_aberration", "sparse_sampling",
)  # fmt: skip
"""Ponomarenko et al. 2015, table 1."""

KADID10K = (
    "gaussian_blur", "lens_blur", "motion_blur", "color_diffusion", "color_shift", "color_quantization",
    "color_saturation_1", "color_saturation_2", "jpeg2000", "jpeg", "white_noise", "color_noise", "impulse_noise",
    "multiplicative_noise", "denoise", "brighten", "darken", "mean_shift", "jitter", "non_eccentricity_patch",
    "pixelate", "quantization", "color_block", "high_sharpen", "contrast_change",
)  # fmt: skip
"""Lin et al. 2019, section 3."""


class LiveType(NamedTuple):
    """A folder of LIVE.

    Attributes:
        folder: its name.
        labels: how many of the labels are of it.
        unit: of the number in its info.txt.
        stronger: 1 where a larger number is a stronger distortion, else -1.
    """

    folder: str
    labels: int
    unit: str
    stronger: int


LIVE = (
    LiveType("jp2k", 227, "bits per pixel", -1),
    LiveType("jpeg", 233, "bits per pixel", -1),
    LiveType("wn", 174, "standard deviation", 1),
    LiveType("gblur", 174, "standard deviation", 1),
    LiveType("fastfading", 174, "receiver SNR", -1),
)
"""In the order of LIVE's labels (Sheikh et al. 2005)."""

CSIQ = {
    "noise": "awgn",
    "blur": "blur",
    "contrast": "contrast",
    "fnoise": "fnoise",
    "jpeg": "jpeg",
    "jpeg2000": "jpeg2000",
}
"""Type in CSIQ's table of labels, without blanks, to its folder."""
