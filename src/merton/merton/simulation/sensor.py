"""The sensor of a simulated camera: its parts, its exposure and its shutter; `imaging` makes the pictures.

Light is linear: 1 is white in a rendered picture. Experiments read the names of sensors here, so nothing heavy is
imported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from merton.world.geometry import Array

FULL_RESOLUTION_FOCAL_PX = 640.0
"""Focal length of the D455's colour camera where a pixel of the image is one of its sensor: 1280 wide, 90 degrees."""
FULL_WELL_E = 10 ** (38 / 10)
"""Electrons that fill a pixel of the sensor. Ours: a largest signal-to-noise ratio of 38 dB, usual for a global-shutter
pixel of 3 um; by EMVA 1288 (release 4.0, 2.6) its square is the full well."""
READ_NOISE_E = FULL_WELL_E / 10 ** (68 / 20)
"""Standard deviation of the noise without light [electrons]. Ours: a dynamic range of 68 dB (EMVA 1288, 2.6)."""
SENSITIVITY_PER_S = 6.25
"""Share of the full well that light 1 fills in a second. Ours: in the cell's own light, as in a room, `GOAL` takes
33 ms at about five times the lowest gain."""
LONGEST_EXPOSURE_S, HIGHEST_GAIN = 1 / 30, 16.0
"""Limits of the auto-exposure. The D455 delivers 30 frames a second; the gain is ours."""
GOAL = 0.45
"""Mean signal that the auto-exposure aims at. Ours: that of the cell's cameras in its own light (wrist 0.55, top 0.44,
side 0.37), so that a sensor adds errors and changes no look; a meter's 0.18 would make a white table grey."""
EXPOSURE_LAG_S = 0.25
"""Time constant of the auto-exposure. Ours: 12 % of the way in each frame, so that it does not flicker."""
LENS_BLUR_PX = 0.7
"""Standard deviation of the lens' point spread at full resolution [px]. Ours: as wide as its pixels."""
READOUT_S = 1 / 60
"""Time from the first to the last row of a rolling shutter [s]. Ours: usual at 30 frames per second."""
MOST_INSTANTS = 12
"""Largest number of instants that a picture in motion is made of."""


@dataclass(frozen=True)
class Sensor:
    """The parts of the sensor's model that are on; without any, pictures are as they are rendered.

    Attributes:
        shot_noise: of the photons, see `imaging.exposed`.
        read_noise: of the electronics, see `imaging.exposed`.
        lens_blur: see `imaging.blurred`.
        vignetting: see `imaging.exposed`.
        motion_blur: the picture is the mean over its exposure, see `shutter_weights`.
        rolling_shutter: rows are exposed one after the other, see `shutter_weights`. Not the D455's: both its colour
            and its infrared sensors have a global shutter (librealsense; realsense-ros issue 3451).
        auto_exposure: see `AutoExposure`; without it pictures are as bright as they are rendered.
        depth_noise, quantised_disparity, occlusion, nearest_distance, difficult_surfaces: of depth, see
            `merton.simulation.stereo`.
    """

    shot_noise: bool = False
    read_noise: bool = False
    lens_blur: bool = False
    vignetting: bool = False
    motion_blur: bool = False
    rolling_shutter: bool = False
    auto_exposure: bool = False
    depth_noise: bool = False
    quantised_disparity: bool = False
    occlusion: bool = False
    nearest_distance: bool = False
    difficult_surfaces: bool = False

    @property
    def changes_color(self) -> bool:
        """Whether any part acts on colour."""
        noise = self.shot_noise or self.read_noise
        return noise or self.lens_blur or self.vignetting or self.auto_exposure or self.sees_motion

    @property
    def changes_depth(self) -> bool:
        """Whether any part acts on depth."""
        measuring = self.depth_noise or self.quantised_disparity
        return measuring or self.occlusion or self.nearest_distance or self.difficult_surfaces

    @property
    def sees_motion(self) -> bool:
        """Whether a picture depends on how things move."""
        return self.motion_blur or self.rolling_shutter


IDEAL = Sensor()
D455 = Sensor(**{field.name: field.name != "rolling_shutter" for field in fields(Sensor)})
SENSORS = MappingProxyType({"ideal": IDEAL, "d455": D455})
"""Names for experiments and nodes."""


@dataclass(frozen=True)
class Exposure:
    """The exposure of a picture: the time that its pixels collect light [s], and the gain after them, >= 1."""

    time_s: float
    gain: float

    @property
    def brightness(self) -> float:
        """Signal that light 1 gives, as a share of the largest one."""
        return SENSITIVITY_PER_S * self.time_s * self.gain


AS_RENDERED = Exposure(LONGEST_EXPOSURE_S, 1 / (SENSITIVITY_PER_S * LONGEST_EXPOSURE_S))
"""The exposure at which a picture is as bright as it is rendered."""


def exposure_of(brightness: float) -> Exposure:
    """The exposure of a `brightness`, as far as the limits allow: a longer time before a higher gain.

    Ours, because gain brings no light: the same brightness with more time has less noise.
    """
    wanted_s = brightness / SENSITIVITY_PER_S
    time_s = min(wanted_s, LONGEST_EXPOSURE_S)
    return Exposure(time_s, min(max(wanted_s / LONGEST_EXPOSURE_S, 1.0), HIGHEST_GAIN))


class AutoExposure:
    """The auto-exposure of one camera: it follows the mean light of its pictures with a lag.

    The first picture of a scene finds it settled, since a camera runs long before a trial. After that its logarithm
    goes the share 1 - exp(-t / `EXPOSURE_LAG_S`) of the way to the exposure that would give the present picture
    its `GOAL`, with t the time since the last picture that counted. Ours: a loop of first order, as a meter sees stops.

    `measured` counts for nothing until `keep` is called, so that a picture for a viewer changes no other.
    """

    def __init__(self) -> None:
        self._kept: tuple[int, float] | None = None
        self._newest: tuple[int, float] | None = None

    def measured(self, stamp_ns: int, mean_light: float) -> Exposure:
        """The exposure of a picture with this mean light, taken at `stamp_ns`."""
        settled = math.log(GOAL / max(mean_light, 1e-6))
        limits = math.log(HIGHEST_GAIN * LONGEST_EXPOSURE_S * SENSITIVITY_PER_S)
        settled = min(settled, limits)
        if self._kept is None:
            value = settled
        else:
            elapsed_s = max(0, stamp_ns - self._kept[0]) / 1e9
            value = settled + (self._kept[1] - settled) * math.exp(-elapsed_s / EXPOSURE_LAG_S)
        self._newest = stamp_ns, value
        return exposure_of(math.exp(value))

    def keep(self) -> None:
        """The picture measured last counts for the following ones."""
        self._kept = self._newest


def instants(sensor: Sensor, exposure: Exposure, speed_px_s: float) -> Array:
    """The instants (n,) [s], from the middle of the picture, whose mean a picture in motion is; n is 1 at rest.

    Args:
        speed_px_s: an upper bound of the motion in the picture. One instant for each pixel of it, at most
            `MOST_INSTANTS`.
    """
    span_s = (exposure.time_s if sensor.motion_blur else 0.0) + (READOUT_S if sensor.rolling_shutter else 0.0)
    count = min(math.ceil(speed_px_s * span_s - 0.5), MOST_INSTANTS)
    if count <= 1:
        return np.zeros(1)
    return ((np.arange(count) + 0.5) / count - 0.5) * span_s


def shutter_weights(sensor: Sensor, exposure: Exposure, times_s: Array, height: int) -> NDArray[np.float32]:
    """The weights (height, n) of the instants in each row.

    A row is the mean of the light over its exposure. With a rolling shutter the middle of the exposure runs from the
    first row to the last one within `READOUT_S`; with a global one it is the same in all rows. The instants share the
    time evenly (Meilland et al., ICCV 2013, eq. 1 to 3, as a sum).
    """
    slot_s = times_s[1] - times_s[0]
    middle_s = (np.arange(height)[:, None] / (height - 1) - 0.5) * (READOUT_S if sensor.rolling_shutter else 0.0)
    half_s = max(exposure.time_s if sensor.motion_blur else 0.0, slot_s) / 2
    begin = np.maximum(times_s - slot_s / 2, middle_s - half_s)
    end = np.minimum(times_s + slot_s / 2, middle_s + half_s)
    overlap = np.maximum(end - begin, 0.0)
    return (overlap / overlap.sum(axis=1, keepdims=True)).astype(np.float32)
