"""What things are made of: who touches whom, how firmly, and in what colour."""

from __future__ import annotations

import mujoco

# Bits of contype: what a geom is. Its conaffinity holds the bits it may touch; the robot does not touch itself, because
# the safety layer predicts self-collisions with real margins and the drawn housings overlap at the joints. Two geoms
# touch if either's conaffinity has the other's bit: so what stands fast touches robot and objects, but neither the
# table it is on nor its own moving parts.
ROBOT, SURROUNDINGS, OBJECT, FIXTURE = 1, 2, 4, 8
# Ours: a stiff contact that does not creep (time constant of two steps); pads and objects settle what they touch.
GRIP = (0.004, 1.0)
FRICTION = (0.6, 0.01, 0.0001)
"""Of objects: sliding, torsion [m], rolling [m]."""
RGB = {
    "red": (0.78, 0.10, 0.09),
    "green": (0.12, 0.52, 0.20),
    "blue": (0.09, 0.26, 0.74),
    "yellow": (0.95, 0.74, 0.06),
}


def matte(spec: mujoco.MjSpec, name: str, rgb: tuple[float, float, float]) -> str:
    """Add a material that hardly shines, and return its name."""
    spec.add_material(name=name, rgba=[*rgb, 1], specular=0.15, shininess=0.2)
    return name
