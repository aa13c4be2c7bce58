"""Surfaces: which geoms may touch, contact stiffness, friction, and colours."""

from __future__ import annotations

from merton.errors import needing

with needing("sim", "the simulated cell"):
    import mujoco

# Bits of contype: the kind of a geom. Its conaffinity holds the bits it may touch; two geoms touch if either's
# conaffinity has the other's bit. The robot does not touch itself: the safety layer predicts self-collisions with real
# margins, and the drawn housings overlap at the joints. Fixtures touch robot and objects, but neither the table they
# stand on nor their own moving parts.
ROBOT, SURROUNDINGS, OBJECT, FIXTURE = 1, 2, 4, 8
# Ours: a stiff contact that does not creep (time constant of two steps); pads and objects settle what they touch.
GRIP = (0.004, 1.0)
FRICTION = (0.6, 0.01, 0.0001)
"""Of objects: sliding, torsion [m], rolling [m]."""
PAD_FRICTION = (1.2, 0.02, 0.0001)
"""Of the fingers, and of things that touch them: sliding, torsion [m], rolling [m]."""
RGB = {
    "red": (0.78, 0.10, 0.09),
    "green": (0.12, 0.52, 0.20),
    "blue": (0.09, 0.26, 0.74),
    "yellow": (0.95, 0.74, 0.06),
}


def matte(spec: mujoco.MjSpec, name: str, rgb: tuple[float, float, float], gloss: float = 0.15) -> str:
    """Add a material that hardly shines, unless `gloss` (its specular share) says so, and return its name."""
    spec.add_material(name=name, rgba=[*rgb, 1], specular=gloss, shininess=0.2)
    return name
