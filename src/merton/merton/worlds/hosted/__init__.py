"""Files that run in the virtual environment of another world: they import nothing of Merton, only numpy and the world.

`host.py` is started by its path and serves one world; each other file holds the class of a world, but `world_wire`,
which both sides of the connection import.
"""

__all__ = ["world_wire"]
