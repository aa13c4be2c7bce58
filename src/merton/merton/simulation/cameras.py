"""What the cell's cameras see, drawn from (task, seed) and the configuration vector alone, in any process."""

from __future__ import annotations

import importlib
import os
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from merton.cell import load_cell
from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.geometry import Matrix
from merton.observation import CameraView, Image, Intrinsics
from merton.simulation.model import build_model, cell_file, focal_length_px, place_mats
from merton.simulation.scene import make_scene

_MAX_DEPTH_M = 6.0
"""A D455 reports nothing beyond about this distance."""


class SceneCameras:
    """Simulated D455s: aligned colour and depth, from one drawing of the scene. To be used from one thread.

    Args:
        width, height: size of the images [px]; the field of view follows the D455's sensor.
        shadows: whether the lamp casts shadows: prettier, and several times slower in software.
        samples: samples per pixel against jagged edges; 0 is fastest.

    Raises:
        MissingDependencyError: this machine cannot draw off screen.
    """

    def __init__(self, width: int = 424, height: int = 240, *, shadows: bool = False, samples: int = 0) -> None:
        cell = load_cell(cell_file())
        self.names = cell.camera_names
        self._model = build_model(width, height, samples=samples)
        self._data = mujoco.MjData(self._model)
        self._placed: tuple[str, int] | None = None
        # mujoco.Renderer would draw everything twice, once for colour and once for depth.
        self._gl = _off_screen(width, height)
        self._gl.make_current()
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._scene = mujoco.MjvScene(self._model, maxgeom=400)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._scene.flags[mujoco.mjtRndFlag.mjRND_HAZE] = True
        focal = focal_length_px(cell, width, height)
        self.intrinsics = Intrinsics(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)

    def render(self, task: str, seed: int, qpos: NDArray[np.float64], camera: str, stamp_ns: int = 0) -> CameraView:
        """One camera's view: colour, aligned depth [m] (0 beyond 6 m) and the pose of its optical frame in `base_link`.

        Args:
            task, seed: the scene, which says where mats lie.
            qpos: configuration vector of the cell's model, as `Cell.qpos` gives it.
            camera: one of `names`.
            stamp_ns: passed on to the view.

        Raises:
            UnknownNameError: no such camera or task.
            InputError: a configuration vector of the wrong length.
        """
        if camera not in self.names:
            raise UnknownNameError("camera", camera, self.names)
        self._pose_scene(task, seed, qpos)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, self._model.camera(camera).id
        color, depth = self._draw(view)
        return CameraView(camera, color, depth, self.intrinsics, self._base_from_camera(camera), stamp_ns)

    def picture(self, task: str, seed: int, qpos: NDArray[np.float64]) -> Image:
        """The whole cell in three-quarter view, for people: (height, width, 3) uint8 RGB."""
        self._pose_scene(task, seed, qpos)
        view = mujoco.MjvCamera()
        view.type = mujoco.mjtCamera.mjCAMERA_FREE.value
        view.lookat[:] = (0.47, 0.0, 0.24)
        view.distance, view.azimuth, view.elevation = 1.85, 67.0, -22.0
        return self._draw(view)[0]

    def close(self) -> None:
        """Give the drawing context back; rendering afterwards is an error."""
        self._gl.make_current()
        self._context.free()
        self._gl.free()

    def _pose_scene(self, task: str, seed: int, qpos: NDArray[np.float64]) -> None:
        if np.shape(qpos) != (self._model.nq,):
            raise InputError(f"the configuration vector must have shape ({self._model.nq},), got {np.shape(qpos)}")
        self._data.qpos[:] = qpos
        if self._placed != (task, seed):
            place_mats(self._model, self._data, make_scene(task, seed))
            self._placed = (task, seed)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)

    def _draw(self, view: mujoco.MjvCamera) -> tuple[Image, NDArray[np.float32]]:
        width, height = self.intrinsics.width, self.intrinsics.height
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._model, self._data, mujoco.MjvOption(), None, view, everything, self._scene)
        self._gl.make_current()
        rectangle = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(rectangle, self._scene, self._context)
        color = np.empty((height, width, 3), np.uint8)
        buffer = np.empty((height, width), np.float32)
        mujoco.mjr_readPixels(color, buffer, rectangle, self._context)
        return np.ascontiguousarray(color[::-1]), self._metres(buffer[::-1])

    def _metres(self, buffer: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distance along the optical axis from OpenGL's reversed depth buffer (1 at the near plane, 0 at the far)."""
        extent = self._model.stat.extent
        near, far = self._model.vis.map.znear * extent, self._model.vis.map.zfar * extent
        depth = np.float32(near * far) / (np.float32(near) + buffer * np.float32(far - near))
        depth[depth > _MAX_DEPTH_M] = 0.0
        return depth

    def _base_from_camera(self, camera: str) -> Matrix:
        body = self._model.body(f"camera_{camera}_color_optical_frame").id
        pose = np.eye(4)
        pose[:3, :3] = self._data.xmat[body].reshape(3, 3)
        pose[:3, 3] = self._data.xpos[body]
        return pose


def _off_screen(width: int, height: int) -> Any:
    """A drawing context without a window: the kind named by MUJOCO_GL, else EGL, else OSMesa."""
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    failures = []
    for kind in [wanted] if wanted in ("egl", "osmesa", "glfw") else ["egl", "osmesa"]:
        try:
            return importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
        except Exception as error:  # a missing library shows as whatever the binding stumbled over
            failures.append(f"{kind}: {error}")
    raise MissingDependencyError(
        f"this machine cannot render off screen ({'; '.join(failures)}): apt install libegl1 libgl1, or libosmesa6"
    )


def picture(task: str, seed: int, qpos: NDArray[np.float64], width: int = 1600, height: int = 1000) -> Image:
    """A large picture of the cell with shadows and smooth edges, (height, width, 3) uint8 RGB."""
    cameras = SceneCameras(width, height, shadows=True, samples=8)
    try:
        return cameras.picture(task, seed, qpos)
    finally:
        cameras.close()
