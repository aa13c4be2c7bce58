"""Images made worse in a controlled way: 7 families, five levels of rising severity each.

The types, their ids and their order follow Embodied-IQA, section 3.1 and Fig. 5; the level values are KADID-10k's
where it has the type and where they rise, and ours elsewhere (each entry's `source` says which). Values in pixels hold
at a reference width and follow the width of the image. Faults of depth and of time are families beside these 30.
"""

# Families in the order of the ids, which is the order of the registry.
# isort: off
from merton.perception.distortion import blur, chrominance, compression, noise, luminance, spatial, others

# isort: on
from merton.perception.distortion.base import (
    CATEGORIES,
    DISTORTIONS,
    LEVELS,
    Distortion,
    LevelSet,
    all_distortions,
    distort,
    find_distortion,
)
from merton.perception.distortion.depth import DEPTH_FAULTS
from merton.perception.distortion.scale import REFERENCE_WIDTH_PX
from merton.perception.distortion.temporal import TEMPORAL_FAULTS

__all__ = [
    "CATEGORIES",
    "DEPTH_FAULTS",
    "DISTORTIONS",
    "LEVELS",
    "REFERENCE_WIDTH_PX",
    "TEMPORAL_FAULTS",
    "Distortion",
    "LevelSet",
    "all_distortions",
    "base",
    "blur",
    "chrominance",
    "compiled",
    "compression",
    "denoiser",
    "depth",
    "distort",
    "faults",
    "find_distortion",
    "gallery",
    "luminance",
    "noise",
    "others",
    "scale",
    "setting",
    "spatial",
    "stream",
    "temporal",
]
