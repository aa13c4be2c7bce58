"""The simulated cell with a calibration board in it, as its cameras see it."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from merton.calibration.charuco import MODULES, CharucoBoard
from merton.perception.camera import d455_intrinsics
from merton.simulation import model as cell_model
from merton.simulation.cameras import _off_screen, _Stage
from merton.world.cell import ARM_JOINTS, load_cell
from merton.world.geometry import Matrix, quaternion_of, transform
from merton.world.observation import Image, Intrinsics

PAPER_MODULES = 3


class BoardInCell:
    """The cell of a `cell.yaml`, arm and all, with a sheet of paper that can be put anywhere.

    Raises:
        MissingDependencyError: this machine cannot draw off screen.
    """

    def __init__(
        self, board: CharucoBoard, cell_config: Path | None = None, width: int = 1280, height: int = 720
    ) -> None:
        self.board, self.cell = board, load_cell(cell_config)
        self.intrinsics: Intrinsics = d455_intrinsics(width, height)
        spec = cell_model._import(cell_model.urdf(cell_config))
        for body in spec.bodies:
            for geom in body.geoms:
                geom.group = 3 if geom.contype else geom.group  # not drawn: its visual is
        cell_model._add_room(spec, self.cell)
        spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
        spec.visual.quality.offsamples = 8
        sheet = np.kron(np.pad(board.pattern, PAPER_MODULES, constant_values=255), np.ones((16, 16), np.uint8))
        spec.add_texture(
            name="board",
            type=mujoco.mjtTexture.mjTEXTURE_2D,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT,
            width=sheet.shape[1],
            height=sheet.shape[0],
            nchannel=3,
        )
        material = spec.add_material(name="board", specular=0.0, shininess=0.0, texuniform=False)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "board"
        module_m = board.square_m / MODULES
        half = [side * module_m / 16 / 2 for side in (sheet.shape[1], sheet.shape[0])]
        body = spec.worldbody.add_body(name="board", mocap=True)
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[*half, 0.1], material="board", contype=0, conaffinity=0)
        for name in self.cell.camera_names:
            spec.body(f"camera_{name}_color_optical_frame").add_camera(
                name=name, quat=[0, 1, 0, 0], fovy=np.degrees(2 * np.arctan(height / 2 / self.intrinsics.fy))
            )
        self.model = spec.compile()
        start = self.model.tex_adr[self.model.texture("board").id]
        pixels = np.repeat(sheet[:, :, None], 3, axis=2)
        self.model.tex_data[start : start + pixels.size] = pixels.ravel()
        self.gl = _off_screen(width, height)
        self.gl.make_current()
        self.stage = _Stage(self.model, shadows=False)
        self.data = self.stage.data

    def render(self, camera: str, joints_rad: np.ndarray, base_from_board: Matrix) -> Image:
        """The image of a camera, (height, width, 3) uint8 RGB, with the arm at (6,) [rad] and the board at (4, 4)."""
        for name, angle in zip(ARM_JOINTS, joints_rad, strict=True):
            self.data.joint(name).qpos[0] = angle
        # MuJoCo's plane faces along its z with y up; the board has its origin in a corner, y down and z away
        middle = transform((*(np.array(self.board.size_m) / 2), 0.0))
        middle[:3, :3] = np.diag([1.0, -1.0, -1.0])
        pose = base_from_board @ middle
        x, y, z, w = quaternion_of(pose)
        self.data.mocap_pos[0], self.data.mocap_quat[0] = pose[:3, 3], (w, x, y, z)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_camlight(self.model, self.data)
        view = mujoco.MjvCamera()
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED.value, self.model.camera(camera).id
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, self.data, mujoco.MjvOption(), None, view, everything, self.stage.scene)
        self.gl.make_current()
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self.stage.context)
        rectangle = mujoco.MjrRect(0, 0, self.intrinsics.width, self.intrinsics.height)
        mujoco.mjr_render(rectangle, self.stage.scene, self.stage.context)
        color = np.empty((self.intrinsics.height, self.intrinsics.width, 3), np.uint8)
        mujoco.mjr_readPixels(color, None, rectangle, self.stage.context)
        return np.ascontiguousarray(color[::-1])

    def close(self) -> None:
        """Give the drawing context back."""
        self.gl.make_current()
        self.stage.context.free()
        self.gl.free()
