"""The arms that a cell can have, by the names that `robot.model` of config/cell.yaml takes.

Each file of this folder registers one arm; a new arm is a new file here and a xacro, see docs/use/adding_a_robot.md.
"""

from importlib import import_module
from pkgutil import iter_modules

from merton.world.arms.arm import ARMS, ONE_TURN, Arm, Capsule, Lengths, Six

__all__ = ["ARMS", "ONE_TURN", "Arm", "Capsule", "Lengths", "Six"]

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
