"""Images of the cell's cameras, rendered from (task, seed) and the configuration vector alone, in any process."""

from __future__ import annotations

import importlib
import os
import weakref
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.simulation.model import body_pose, build_model, focal_length_px, place_fixed
from merton.simulation.props import props_of
from merton.simulation.scene import make_scene
from merton.world.cell import load_cell
from merton.world.geometry import Array, Matrix
from merton.world.observation import CameraView, Image, Intrinsics

_MAX_DEPTH_M = 6.0
"""A D455 reports no depth beyond about this distance."""

_UNCLOSED: list[Any] = []
"""Drawing contexts of `SceneCameras` that were never closed, kept until the process ends: the garbage collector would
free them while another context is current, and delete that one's textures."""


class _Stage:
    """A model with its data and renderer; made while a drawing context is current."""

    def __init__(self, model: mujoco.MjModel, *, shadows: bool) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        self.context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self.scene = mujoco.MjvScene(model, maxgeom=400)
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self.scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = True


class SceneCameras:
    """Simulated D455s: aligned colour and depth, from one drawing of the scene. For one thread only.

    Args:
        width, height: size of the images [px]; the field of view follows the D455's sensor.
        shadows: whether the lamp casts shadows, which takes several times as long in software.
        samples: samples per pixel against jagged edges; 0 is fastest.
        linkage: whether the cell's gripper has one, as in `SimulatedCell`.

    Raises:
        MissingDependencyError: this machine cannot draw off screen.
    """

    def __init__(
        self, width: int = 424, height: int = 240, *, shadows: bool = False, samples: int = 0, linkage: bool = False
    ) -> None:
        cell = load_cell(linkage=linkage)
        self._linkage = linkage
        self.names = cell.camera_names
        self._samples, self._shadows = samples, shadows
        self._size = width, height
        self._stages: dict[tuple[str, ...], _Stage] = {}
        # mujoco.Renderer would draw the scene twice, once for colour and once for depth.
        self._gl = _off_screen(width, height)
        self._unclosed = weakref.finalize(self, _UNCLOSED.append, (self._gl, self._stages))
        self._stage = self._stage_of(())
        self._placed: tuple[str, int] | None = None
        focal = focal_length_px(cell, width, height)
        self.intrinsics = Intrinsics(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)

    def render(
        self, task: str, seed: int, qpos: Array, camera: str, stamp_ns: int = 0, *, depth: bool = True
    ) -> CameraView:
        """One camera's view: colour, aligned depth [m] (0 beyond 6 m) and the pose of its optical frame in `base_link`.

        Args:
            task, seed: the scene: places of mats and fixtures, colours of props.
            qpos: configuration vector of the cell's model, as in `SimulatedCell.qpos`.
            camera: one of `names`.
            stamp_ns: stamp of the view.
            depth: whether the view has depth, which is read from the drawing and converted to metres.

        Raises:
            UnknownNameError: no such camera or task.
            InputError: a configuration vector of the wrong length.
        """
        if camera not in self.names:
            raise UnknownNameError("camera", camera, self.names)
        self._pose_scene(task, seed, qpos)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, self._stage.model.camera(camera).id
        color, depth_m = self._draw(view, depth)
        return CameraView(camera, color, depth_m, self.intrinsics, self._base_from_camera(camera), stamp_ns)

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

    def _stage_of(self, props: tuple[str, ...]) -> _Stage:
        if props not in self._stages:
            self._gl.make_current()
            model = build_model(*self._size, with_props=props, samples=self._samples, linkage=self._linkage)
            self._stages[props] = _Stage(model, shadows=self._shadows)
        return self._stages[props]

    def _pose_scene(self, task: str, seed: int, qpos: Array) -> None:
        stage = self._stage_of(props_of(task))
        if np.shape(qpos) != (stage.model.nq,):
            raise InputError(f"the configuration vector must have shape ({stage.model.nq},), got {np.shape(qpos)}")
        stage.data.qpos[:] = qpos
        if self._placed != (task, seed):
            place_fixed(stage.model, stage.data, make_scene(task, seed))
            self._placed = (task, seed)
        self._stage = stage
        mujoco.mj_kinematics(stage.model, stage.data)
        mujoco.mj_camlight(stage.model, stage.data)

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
        depth[depth > _MAX_DEPTH_M] = 0.0
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


def picture(task: str, seed: int, qpos: Array, width: int = 1600, height: int = 1000) -> Image:
    """A large picture of the cell with shadows and smooth edges, (height, width, 3) uint8 RGB."""
    cameras = SceneCameras(width, height, shadows=True, samples=8)
    try:
        return cameras.picture(task, seed, qpos)
    finally:
        cameras.close()
