"""From the xacro to a MuJoCo model: the cell that RViz and Gazebo show, with motors, objects, lights and cameras."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from merton.errors import needing
from merton.files import resource
from merton.simulation import props
from merton.simulation.look import Look, dress
from merton.simulation.surfaces import FRICTION, GRIP, OBJECT, PAD_FRICTION, RGB, ROBOT, SURROUNDINGS, matte
from merton.simulation.varied import Layout
from merton.simulation.varied_model import add_things
from merton.world import linkage as links
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, CellConfig, cell_file, load_cell
from merton.world.geometry import Matrix, transform
from merton.world.tasks import COLORS, PAD_LINKS, SHAPES, TASKS, prop_of

with needing("sim", "the simulated cell"):
    import mujoco
    import xacro

if TYPE_CHECKING:
    from merton.simulation.scene import Scene

FINGER_LINKS = ("gripper_left_finger", "gripper_right_finger", *PAD_LINKS)
OBJECTS = tuple(f"{color} {shape}" for shape in SHAPES for color in COLORS)
"""The pool of objects, in the order their free joints stand in qpos."""
MATS = tuple(f"{color} mat" for color in COLORS)

TIMESTEP_S = 0.002
PARKED_Z = -4.0
"""Height at which objects and mats that are not part of a scene wait, below the room's floor [m]."""

_MAT_THICKNESS = 0.0012
# Ours: stiff enough to follow 1 rad/s within a milliradian, soft enough for 2 ms steps [N m / rad].
_ARM_STIFFNESS = (10000.0, 10000.0, 6000.0, 1500.0, 1500.0, 1500.0)
_ARM_ARMATURE = (0.3, 0.3, 0.2, 0.05, 0.05, 0.05)
_FINGER_STIFFNESS, _FINGER_ARMATURE = 5000.0, 0.2  # [N/m], [kg]


def urdf(cell_config: str | Path | None = None, *, linkage: bool = False) -> str:
    """The robot description: `urdf/cell.urdf.xacro`, expanded with `cell_config`, or `config/cell.yaml` if None.

    `linkage`: with the linkage of the real gripper in place of sliding fingers.
    """
    source = resource("merton_description", "urdf/cell.urdf.xacro")
    mappings = {
        "cell_config": str(Path(cell_config).resolve() if cell_config else cell_file()),
        "gripper_linkage": str(linkage).lower(),
    }
    return str(xacro.process_file(str(source), mappings=mappings).toprettyxml(indent="  "))


def rest_height_m(name: str, cell: CellConfig) -> float:
    """Height of the origin of a thing's frame when it stands on the table [m]; of an object, that is its centre."""
    shape = name.split()[-1]
    if prop := prop_of(shape):
        return prop.origin_m(cell.objects.props)
    return (cell.objects.cube_edge if shape == "cube" else cell.objects.cylinder_height) / 2


def place_objects(model: mujoco.MjModel, data: mujoco.MjData, scene: Scene, cell: CellConfig) -> None:
    """Put the movable things of a scene on the table; all other objects hang, weightless, below the floor."""
    for name in OBJECTS:
        if name not in scene.placements:
            body = model.body(name).id
            data.xfrc_applied[body, :3] = -model.body_mass[body] * model.opt.gravity
    for name, (x, y, yaw) in scene.placements.items():
        body_name = props.body_of(name)
        prop = prop_of(body_name)
        if prop is None or not prop.fixed:
            _put(model, data, body_name, (x, y, rest_height_m(name, cell)), yaw)
        if name == scene.command.object and TASKS[scene.command.verb].beads:
            for bead, offset in zip(props.bead_names(cell), props.beads_in_cup(cell), strict=True):
                _put(model, data, bead, (x + offset[0], y + offset[1], offset[2]), 0.0)


def place_fixed(model: mujoco.MjModel, data: mujoco.MjData, scene: Scene) -> None:
    """Put a scene's mats and fixtures on the table, take the other mats away, and paint the props."""
    for name in MATS:
        mat = model.body(name)
        data.mocap_pos[mat.mocapid[0]] = (*scene.mats[name], 0.0) if name in scene.mats else mat.pos
    for name, (x, y, yaw) in scene.placements.items():
        if (prop := prop_of(props.body_of(name))) is not None and prop.fixed:
            mocap = model.body(prop.base).mocapid[0]
            data.mocap_pos[mocap] = (x, y, 0.0)
            data.mocap_quat[mocap] = (math.cos(yaw / 2), 0, 0, math.sin(yaw / 2))
    props.paint(model, scene.placements)


def _put(
    model: mujoco.MjModel, data: mujoco.MjData, body: str, position: tuple[float, float, float], yaw_rad: float
) -> None:
    """Set the free joint of a body: the origin of its frame [m] in `base_link`, and its yaw."""
    address = model.jnt_qposadr[model.body_jntadr[model.body(body).id]]
    data.qpos[address : address + 7] = [*position, math.cos(yaw_rad / 2), 0, 0, math.sin(yaw_rad / 2)]


def build_model(
    width: int = 424,
    height: int = 240,
    *,
    with_props: tuple[str, ...] = (),
    samples: int = 0,
    cell_config: str | Path | None = None,
    linkage: bool = False,
    layout: Layout | None = None,
    look: Look | None = None,
) -> mujoco.MjModel:
    """The cell as a MuJoCo model; the same every time.

    qpos holds the six arm joints, the fingers' (two that slide, or the six of a linkage), a free joint (position,
    quaternion w x y z) per object of `OBJECTS`, then the joints of the props. ctrl holds six joint angles [rad] and the
    position of the gripper's driven joint: of the left finger [m], or of the linkage [rad]. Mats and fixtures are mocap
    bodies.

    Args:
        width, height: size of the images to render [px].
        with_props: names of the props, see `merton.simulation.props.props_of`.
        samples: samples per pixel of the off-screen buffer; 0 is fastest.
        cell_config: the cell's geometry; `config/cell.yaml` if None.
        linkage: fingers on the linkage of the real gripper, see `merton.world.linkage`; else sliding ones.
        layout: of a varied scene, whose things take the place of `OBJECTS`, mats and props, where they are to stand.
        look: of a varied scene; None: that of the plain ones, as physics do not depend on it.
    """
    cell, description = _own_cell(linkage) if cell_config is None else _described(cell_config, linkage)
    spec = _import(description)
    spec.visual.global_.offwidth, spec.visual.global_.offheight = width, height
    spec.visual.quality.offsamples = samples
    _prepare_contacts(spec)
    _add_actuators(spec, cell)
    if layout is None:
        _add_objects(spec, cell)
        props.add_props(spec, with_props, cell, PARKED_Z)
    else:
        # things at rest cost nothing until they are touched; plain scenes go without, and keep the results they had
        spec.option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        add_things(spec, layout, cell, look.paint if look else None, look.gloss if look else None)
    _add_room(spec, cell)
    focal = focal_length_px(cell, width, height)
    for name in cell.camera_names:
        spec.body(f"camera_{name}_color_optical_frame").add_camera(
            name=name,
            quat=[0, 1, 0, 0],  # MuJoCo's cameras look along -z with y up
            fovy=math.degrees(2 * math.atan(height / 2 / focal)),
            resolution=[width, height],
        )
    if look is not None:
        dress(spec, look, cell)
    return spec.compile()


@lru_cache(maxsize=2)
def _own_cell(linkage: bool) -> tuple[CellConfig, str]:
    """That of `config/cell.yaml`, read once: every varied scene has a model, and this would take most of its time."""
    return _described(None, linkage)


def _described(cell_config: str | Path | None, linkage: bool) -> tuple[CellConfig, str]:
    """A cell, and its `urdf`."""
    return load_cell(cell_config, linkage=linkage), urdf(cell_config, linkage=linkage)


def body_pose(data: mujoco.MjData, body: int) -> Matrix:
    """Pose (4, 4) of a body in `base_link`."""
    pose = transform(data.xpos[body])
    pose[:3, :3] = data.xmat[body].reshape(3, 3)
    return pose


def focal_length_px(cell: CellConfig, width: int, height: int) -> float:
    """Focal length of a D455 that delivers images of this size [px].

    Its sensor is 8 : 5 and other shapes are cut from it, so the tighter side decides: 384 at 640 x 480, 640 at
    1280 x 720.
    """
    given = cell.cameras
    return given.fx * max(width, height * 1.6) / max(given.width, given.height * 1.6)


def _import(description: str) -> mujoco.MjSpec:
    compiler = '<mujoco><compiler discardvisual="false" strippath="false" fusestatic="false"/></mujoco>'
    spec = mujoco.MjSpec.from_string(description.replace("</robot>", f"{compiler}</robot>"))
    spec.option.timestep = TIMESTEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10
    return spec


def _prepare_contacts(spec: mujoco.MjSpec) -> None:
    """Set contacts and stiffness of geoms; arm and tool weigh nothing (`gravcomp`), as under a real controller."""
    for body in spec.bodies:
        surroundings = body.name == "table" or body.name.startswith("wall_")
        if not surroundings:
            body.gravcomp = 1
        for geom in body.geoms:
            if geom.contype == 0:
                continue  # a visual
            geom.group = 3  # not drawn: its visual is
            geom.contype = SURROUNDINGS if surroundings else ROBOT
            geom.conaffinity = (ROBOT if surroundings else SURROUNDINGS) | OBJECT
            geom.solref = GRIP
            if body.name in FINGER_LINKS:
                geom.condim, geom.friction = 4, list(PAD_FRICTION)
                geom.priority = 2


def _add_actuators(spec: mujoco.MjSpec, cell: CellConfig) -> None:
    for name, stiffness, armature in zip(ARM_JOINTS, _ARM_STIFFNESS, _ARM_ARMATURE, strict=True):
        joint = spec.joint(name)
        joint.armature = armature
        limit = float(joint.actfrcrange[1])
        actuator = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcerange=[-limit, limit]
        )
        actuator.set_to_position(kp=stiffness, dampratio=1)
    # a crank as lever arm makes of a slider's force, stiffness and inertia those about a joint
    lever = links.CRANK_M if cell.gripper.linkage else 1.0
    fingers = (links.JOINT, *links.MIMICS) if cell.gripper.linkage else FINGER_JOINTS
    for name in fingers:
        spec.joint(name).armature = _FINGER_ARMATURE * lever**2
    force = cell.gripper.max_force * lever
    actuator = spec.add_actuator(
        name="gripper", target=fingers[0], trntype=mujoco.mjtTrn.mjTRN_JOINT, forcerange=[-force, force]
    )
    actuator.set_to_position(kp=_FINGER_STIFFNESS * lever**2, dampratio=1)
    for equality in spec.equalities:  # the URDF's <mimic>
        equality.solref = GRIP


def _add_objects(spec: mujoco.MjSpec, cell: CellConfig) -> None:
    sizes = cell.objects
    for index, name in enumerate(OBJECTS):
        color, shape = name.split()
        body = spec.worldbody.add_body(name=name, pos=[index, 0, PARKED_Z])
        body.add_freejoint(name=name)
        cube = shape == "cube"
        half = sizes.cube_edge / 2
        body.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_BOX if cube else mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[half, half, half] if cube else [sizes.cylinder_diameter / 2, sizes.cylinder_height / 2, 0],
            material=matte(spec, name, RGB[color]),
            mass=sizes.mass,
            contype=OBJECT,
            conaffinity=ROBOT | SURROUNDINGS | OBJECT,
            condim=4,
            friction=list(FRICTION),
            solref=GRIP,
            priority=1,
        )
    for index, name in enumerate(MATS):
        body = spec.worldbody.add_body(name=name, pos=[index, 1, PARKED_Z], mocap=True)
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[sizes.mat_radius, _MAT_THICKNESS / 2, 0],
            pos=[0, 0, _MAT_THICKNESS / 2],
            material=matte(spec, name, RGB[name.split()[0]]),
            contype=0,  # a mat is paint: things stand on the table
            conaffinity=0,
        )


def _add_room(spec: mujoco.MjSpec, cell: CellConfig) -> None:
    """Floor, sky and a soft, warm light from the upper right, all without contacts."""
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.78, 0.79, 0.80],
        rgb2=[0.40, 0.41, 0.43],
        width=256,
        height=256,
    )
    spec.add_material(name="floor", rgba=[0.24, 0.25, 0.27, 1], specular=0.1, shininess=0.1)
    spec.worldbody.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 0.1],  # without end
        pos=[0.4, 0, cell.floor.z],
        material="floor",
        contype=0,
        conaffinity=0,
    )
    spec.visual.rgba.haze = [0.40, 0.41, 0.43, 1]
    spec.visual.map.haze = 0.25
    spec.visual.headlight.ambient = [0.38, 0.38, 0.385]
    spec.visual.headlight.diffuse = [0.12, 0.12, 0.12]
    spec.visual.headlight.specular = [0, 0, 0]
    spec.visual.map.znear, spec.visual.map.zfar = 0.005, 6.0
    spec.visual.quality.shadowsize, spec.visual.quality.numslices = 4096, 24
    spec.stat.extent, spec.stat.center = 2.0, [0.45, 0.0, 0.3]
    spec.worldbody.add_light(
        name="key",
        type=mujoco.mjtLightType.mjLIGHT_SPOT,
        pos=[0.1, -1.3, 2.3],
        dir=_towards([0.1, -1.3, 2.3], [0.45, 0.05, 0.0]),
        diffuse=[0.56, 0.53, 0.485],
        specular=[0.25, 0.24, 0.22],
        cutoff=50,
        exponent=1,
        castshadow=True,
    )
    spec.worldbody.add_light(
        name="fill",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[1.2, 1.0, 2.0],
        dir=_towards([1.4, 0.6, 2.0], [0.45, 0.0, 0.0]),
        diffuse=[0.20, 0.21, 0.23],
        specular=[0, 0, 0],
        castshadow=False,
    )


def _towards(start: list[float], end: list[float]) -> list[float]:
    direction = np.subtract(end, start)
    return [float(value) for value in direction / np.linalg.norm(direction)]
