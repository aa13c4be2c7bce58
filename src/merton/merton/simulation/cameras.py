"""Images of the cell's cameras, rendered from (task, seed) and the configuration vector, in any process.

With a `Sensor` they depend on two things more: on the arm's velocity while it moves, and through the auto-exposure on
the pictures that were kept since the scene began.
"""

from __future__ import annotations

import importlib
import math
import os
import weakref
import zlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, MissingDependencyError, UnknownNameError, needing
from merton.seeding import generator
from merton.simulation import imaging, stereo, varied_model
from merton.simulation import sensor as sensing
from merton.simulation.imaging import Light
from merton.simulation.look import SURFACES, make_look
from merton.simulation.model import body_pose, build_model, focal_length_px, place_fixed
from merton.simulation.props import body_of, props_of
from merton.simulation.scene import Scene, make_scene
from merton.simulation.sensor import IDEAL, AutoExposure, Exposure, Sensor
from merton.simulation.varied import Layout
from merton.world.cell import load_cell
from merton.world.geometry import Array, Matrix, transform
from merton.world.observation import CameraView, Image, Intrinsics

with needing("sim", "the simulated cell"):
    import mujoco

_SEGMENTED = {
    mujoco.mjtRndFlag.mjRND_SEGMENT.value: True,
    mujoco.mjtRndFlag.mjRND_IDCOLOR.value: True,
    mujoco.mjtRndFlag.mjRND_HAZE.value: False,
    mujoco.mjtRndFlag.mjRND_SHADOW.value: False,
}
"""Flags of a drawing in which the colour of a pixel is the number of the geom that it shows."""

_UNCLOSED: list[Any] = []
"""Drawing contexts of `SceneCameras` that were never closed, kept until the process ends: the garbage collector would
free them while another context is current, and delete that one's textures."""


@dataclass(frozen=True)
class Survey:
    """A picture, and the truth about it.

    Attributes:
        color: (height, width, 3) uint8 RGB.
        roots: (height, width) number of the outermost body that a pixel shows, the same in every model of the scene;
            -1 where it shows none.
        base_from_camera: pose (4, 4) of the camera in `base_link`: x to the right, y down, z ahead.
        focal_px: focal length [px]; the axis goes through the middle of the picture.
    """

    color: Image
    roots: NDArray[np.int64]
    base_from_camera: Matrix
    focal_px: float


class _Stage:
    """A model with its data and renderer; made while a drawing context is current.

    Args:
        context: of a model with as many textures of the same kinds and sizes, to be shared, since a new one takes much
            longer; its textures are those of the stage that was made last.
    """

    def __init__(self, model: mujoco.MjModel, *, shadows: bool, context: mujoco.MjrContext | None = None) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        if context is None:
            self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        else:
            self.context = context
            # The context keeps which material has which texture; their numbers differ from model to model.
            for name in ("mat_texid", "mat_texuniform", "mat_texrepeat"):
                of_materials, own = getattr(context, name), np.ravel(getattr(model, name))
                of_materials.ravel()[: own.size] = own
            for surface in SURFACES:
                mujoco.mjr_uploadTexture(model, context, model.texture(surface).id)
        self.context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self.scene = mujoco.MjvScene(model, maxgeom=400)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = True


class SceneCameras:
    """Simulated D455s: aligned colour and depth, from one drawing of the scene. For one thread only.

    Args:
        width, height: size of the images [px]; that of `config/cell.yaml` if None. The field of view follows the
            D455's sensor.
        shadows: whether the lamp casts shadows, which takes several times as long in software.
        samples: samples per pixel against jagged edges; 0 is fastest.
        linkage: whether the cell's gripper has one, as in `SimulatedCell`.

    Attributes:
        sensor: the parts of a D455's sensor that are on, set by `imitate`; at first none, `IDEAL`.

    Raises:
        MissingDependencyError: this machine cannot draw off screen.
    """

    def __init__(
        self,
        width: int | None = None,
        height: int | None = None,
        *,
        shadows: bool = False,
        samples: int = 0,
        linkage: bool = False,
    ) -> None:
        cell = load_cell(linkage=linkage)
        width, height = width or cell.cameras.width, height or cell.cameras.height
        self._linkage = linkage
        self.names = cell.camera_names
        self._samples, self._shadows = samples, shadows
        self._size = width, height
        self._stages: dict[str | tuple[str, ...], _Stage] = {}
        """Those of plain scenes by their props, and under "varied" that of the last varied scene."""
        # mujoco.Renderer would draw the scene twice, once for colour and once for depth.
        self._gl = _off_screen(width, height)
        self._unclosed = weakref.finalize(self, _UNCLOSED.append, (self._gl, self._stages))
        self._stage = self._plain_stage(())
        self._varied = ""
        """The world of the varied scene that has a stage."""
        self._scene: Scene | None = None
        """The scene whose fixed things have their places and colours."""
        focal = focal_length_px(cell, width, height)
        self.intrinsics = Intrinsics(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)
        self.imitate(IDEAL)

    def imitate(self, sensor: Sensor) -> None:
        """Deliver pictures of this sensor from now on."""
        self.sensor = sensor
        self.begin_scene()

    def begin_scene(self) -> None:
        """Forget the exposures: the next picture of each camera finds it settled on the scene."""
        self._exposures = {name: AutoExposure() for name in self.names}

    def exposures(self) -> dict[str, AutoExposure]:
        """The exposure of each camera as it is now, for `restore_exposures`."""
        return {name: copy(exposure) for name, exposure in self._exposures.items()}

    def restore_exposures(self, exposures: Mapping[str, AutoExposure]) -> None:
        """Go back to exposures of `exposures`."""
        self._exposures = {name: copy(exposure) for name, exposure in exposures.items()}

    def keep_exposure(self, camera: str) -> None:
        """The picture that was rendered last of a camera counts for its exposure from now on.

        A trial calls this for its pictures. Those of viewers do not count, and so change nothing in a trial.
        """
        self._exposures[camera].keep()

    def render(
        self,
        task: str,
        seed: int,
        qpos: Array,
        camera: str,
        stamp_ns: int = 0,
        *,
        depth: bool = True,
        joint_velocities: Array | None = None,
    ) -> CameraView:
        """One camera's view: colour, aligned depth [m] (0 beyond 6 m) and the pose of its optical frame in `base_link`.

        The noise of a sensor depends on the scene, the camera and the rendered pixels. Ours: the same picture has the
        same noise in any order of trials, which a seed from the clock would not give, and another picture another one.

        Args:
            task, seed: the scene: places of mats and fixtures, colours of props, and the look of a varied one.
            qpos: configuration vector of the cell's model, as in `SimulatedCell.qpos`.
            camera: one of `names`.
            stamp_ns: stamp of the view; the auto-exposure takes elapsed time from it.
            depth: whether the view has depth, which is read from the drawing and converted to metres.
            joint_velocities: (6,) of the arm [rad/s], for motion blur and rolling shutter; None is rest. Ours: the arm
                alone moves during an exposure. An object in the hand is drawn where it is in its middle.

        Raises:
            UnknownNameError: no such camera or task.
            InputError: a configuration vector of the wrong length.
        """
        view = self._posed(task, seed, qpos, camera)
        color, depth_m = self._draw(view, depth)
        pose = self._base_from_camera(camera)
        drawn = color

        def noise(part: str) -> np.random.Generator:
            return generator("sensor", task, seed, camera, zlib.crc32(drawn.data), part)

        if self.sensor.changes_color:
            light = imaging.linear(drawn)
            exposure = self._exposure_of(camera, stamp_ns, light)
            if self.sensor.sees_motion and joint_velocities is not None:
                light = self._in_motion(view, light, exposure, qpos, joint_velocities)
            if self.sensor.lens_blur:
                light = imaging.blurred(light, self.intrinsics)
            color = imaging.exposed(self.sensor, light, self.intrinsics, exposure, noise("color"))
        if self.sensor.changes_depth and depth_m is not None:
            depth_m = stereo.measured(self.sensor, depth_m, drawn, self.intrinsics.fx, noise("depth"))
        return CameraView(camera, color, depth_m, self.intrinsics, pose, stamp_ns)

    def things(self, task: str, seed: int, qpos: Array, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of `render` that show the object or the target of the task, fixed parts included.

        Without the errors of a sensor; exact for `samples` of 0 alone. Arguments and errors as of `render`.
        """
        view = self._posed(task, seed, qpos, camera)
        model, roots = self._stage.model, self._roots(view)
        return np.isin(roots, [int(model.body_rootid[body]) for body in self._named_bodies()])

    def survey(self, task: str, seed: int, qpos: Array, view: mujoco.MjvCamera) -> Survey:
        """The cell as a camera of MuJoCo sees it, what each pixel shows, and where that camera is.

        Exact for `samples` of 0 alone. Raises as `render`.
        """
        color = self.look(task, seed, qpos, view)
        roots, eyes = self._roots(view), self._stage.scene.camera
        forward, up = np.array(eyes[0].forward, float), np.array(eyes[0].up, float)
        pose = transform((np.array(eyes[0].pos, float) + eyes[1].pos) / 2)
        pose[:3, :3] = np.column_stack([np.cross(forward, up), -up, forward])
        focal_px = self._size[1] / 2 / math.tan(math.radians(float(self._stage.model.vis.global_.fovy)) / 2)
        return Survey(color, roots, pose, focal_px)

    def _roots(self, view: mujoco.MjvCamera) -> NDArray[np.int64]:
        """For each pixel (height, width) the number of the outermost body that it shows; -1 is none."""
        scene, model = self._stage.scene, self._stage.model
        plain = {flag: scene.flags[flag] for flag in _SEGMENTED}
        for flag, value in _SEGMENTED.items():
            scene.flags[flag] = value
        drawn = self._draw(view, depth=False)[0].astype(np.int64) @ (1, 1 << 8, 1 << 16)  # number + 1, 0 is nothing
        for flag, value in plain.items():
            scene.flags[flag] = value
        root = np.full(scene.ngeom + 1, -1, np.int64)
        for geom in scene.geoms[: scene.ngeom]:
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM and geom.segid >= 0:
                root[geom.segid + 1] = model.body_rootid[model.geom_bodyid[geom.objid]]
        return np.asarray(root[drawn])

    def picture(self, task: str, seed: int, qpos: Array) -> Image:
        """The whole cell in three-quarter view, (height, width, 3) uint8 RGB."""
        view = mujoco.MjvCamera()
        view.type = mujoco.mjtCamera.mjCAMERA_FREE.value
        view.lookat[:] = (0.47, 0.0, 0.24)
        view.distance, view.azimuth, view.elevation = 1.85, 67.0, -22.0
        return self.look(task, seed, qpos, view)

    def look(self, task: str, seed: int, qpos: Array, view: mujoco.MjvCamera) -> Image:
        """The cell as a camera of MuJoCo sees it, (height, width, 3) uint8 RGB."""
        self._pose_scene(task, seed, qpos)
        return self._draw(view, depth=False)[0]

    def close(self) -> None:
        """Release the drawing context; call nothing afterwards."""
        self._unclosed.detach()
        self._gl.make_current()
        for stage in self._stages.values():
            stage.context.free()
        self._gl.free()

    def _exposure_of(self, camera: str, stamp_ns: int, light: Light) -> Exposure:
        if not self.sensor.auto_exposure:
            return sensing.AS_RENDERED
        return self._exposures[camera].measured(stamp_ns, imaging.mean_light(light))

    def _in_motion(
        self, view: mujoco.MjvCamera, light: Light, exposure: Exposure, qpos: Array, joint_velocities: Array
    ) -> Light:
        """The mean light of the instants of an exposure, each drawn with the arm where it is then.

        The picture of a thing moves by no more than the focal length for each radian of each joint, unless it is
        nearer to the camera than to the joint.
        """
        speed_px_s = self.intrinsics.fx * float(np.abs(joint_velocities).sum())
        times_s = sensing.instants(self.sensor, exposure, speed_px_s)
        if len(times_s) == 1:
            return light
        weights = sensing.shutter_weights(self.sensor, exposure, times_s, len(light))
        mean = np.zeros_like(light)
        for time_s, weight in zip(times_s, weights.T, strict=True):
            self._stage.data.qpos[:] = qpos
            self._stage.data.qpos[:6] += time_s * np.asarray(joint_velocities)
            self._update_poses()
            mean += weight[:, None, None] * imaging.linear(self._draw(view, depth=False)[0])
        return mean

    def _plain_stage(self, props: tuple[str, ...]) -> _Stage:
        if props not in self._stages:
            self._gl.make_current()
            model = build_model(*self._size, with_props=props, samples=self._samples, linkage=self._linkage)
            self._stages[props] = _Stage(model, shadows=self._shadows)
        return self._stages[props]

    def _varied_stage(self, scene: Scene, layout: Layout) -> _Stage:
        if self._varied != scene.world:
            self._gl.make_current()
            look, last = make_look(layout.split, layout.seed, self.names), self._stages.get("varied")
            model = build_model(*self._size, samples=self._samples, linkage=self._linkage, layout=layout, look=look)
            context = None if last is None else last.context
            self._stages["varied"] = _Stage(model, shadows=self._shadows, context=context)
            self._varied = scene.world
        return self._stages["varied"]

    def _pose_scene(self, task: str, seed: int, qpos: Array) -> None:
        scene = self._scene
        if scene is None or (scene.task, scene.seed) != (task, seed):
            scene = make_scene(task, seed)
        plain = scene.layout is None
        stage = self._plain_stage(props_of(task)) if scene.layout is None else self._varied_stage(scene, scene.layout)
        if np.shape(qpos) != (stage.model.nq,):
            raise InputError(f"the configuration vector must have shape ({stage.model.nq},), got {np.shape(qpos)}")
        stage.data.qpos[:] = qpos
        if scene is not self._scene and plain:
            place_fixed(stage.model, stage.data, scene)
        self._scene, self._stage = scene, stage
        self._update_poses()

    def _posed(self, task: str, seed: int, qpos: Array, camera: str) -> mujoco.MjvCamera:
        """The camera of a name in the scene, which is posed; raises as `render`."""
        if camera not in self.names:
            raise UnknownNameError("camera", camera, self.names)
        self._pose_scene(task, seed, qpos)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, self._stage.model.camera(camera).id
        return view

    def _named_bodies(self) -> list[int]:
        """The bodies of the things that the instruction names."""
        assert self._scene is not None
        body_named = body_of if self._scene.layout is None else varied_model.body_of
        names = (self._scene.meant.object, self._scene.meant.target)
        return [int(self._stage.model.body(body_named(name)).id) for name in names if name]

    def _update_poses(self) -> None:
        mujoco.mj_kinematics(self._stage.model, self._stage.data)
        mujoco.mj_camlight(self._stage.model, self._stage.data)

    def _draw(self, view: mujoco.MjvCamera, depth: bool) -> tuple[Image, NDArray[np.float32] | None]:
        width, height = self._size
        stage, everything = self._stage, mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(stage.model, stage.data, mujoco.MjvOption(), None, view, everything, stage.scene)
        self._gl.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, stage.context)
        rectangle = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(rectangle, stage.scene, stage.context)
        color = np.empty((height, width, 3), np.uint8)
        buffer = np.empty((height, width), np.float32) if depth else None
        mujoco.mjr_readPixels(color, buffer, rectangle, stage.context)
        return np.ascontiguousarray(color[::-1]), None if buffer is None else self._metres(buffer[::-1])

    def _metres(self, buffer: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distance along the optical axis from OpenGL's reversed depth buffer (1 at the near plane, 0 at the far)."""
        extent = self._stage.model.stat.extent
        near, far = self._stage.model.vis.map.znear * extent, self._stage.model.vis.map.zfar * extent
        depth = np.float32(near * far) / (np.float32(near) + buffer * np.float32(far - near))
        depth[depth > stereo.FARTHEST_M] = 0.0
        return depth

    def _base_from_camera(self, camera: str) -> Matrix:
        return body_pose(self._stage.data, self._stage.model.body(f"camera_{camera}_color_optical_frame").id)


def _off_screen(width: int, height: int) -> Any:
    """A drawing context without a window: the kind named by MUJOCO_GL, else EGL, else OSMesa."""
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    failures = []
    for kind in [wanted] if wanted in ("egl", "osmesa", "glfw") else ["egl", "osmesa"]:
        try:
            return importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
        except Exception as error:  # a missing library shows as errors of many types
            failures.append(f"{kind}: {error}")
    raise MissingDependencyError(
        f"this machine cannot render off screen ({'; '.join(failures)}): apt install libegl1 libgl1, or libosmesa6"
    )
