"""The whole state of a MuJoCo simulation, exactly: what follows `restore` is what followed `saved`, to the last bit.

All of MjData is kept, what a step leaves behind too (places of bodies, contacts, the solver's warm start). A picture
shows the places that the last step computed, a physics step before its positions, so that mj_forward would move it.
"""

from __future__ import annotations

import copy

import mujoco


def saved(model: mujoco.MjModel, data: mujoco.MjData) -> mujoco.MjData:
    """A copy of an MjData, for its MjModel alone. It reserves the model's `narena` bytes, but uses few of them."""
    del model
    return copy.copy(data)


def restore(model: mujoco.MjModel, data: mujoco.MjData, state: mujoco.MjData) -> None:
    """Write what `saved` gave into an MjData of the same MjModel."""
    mujoco.mj_copyData(data, model, state)


def renderer() -> str:
    """What draws, as OpenGL names it: other renderers and other versions of them give other pixels."""
    from OpenGL import GL

    context = mujoco.GLContext(8, 8)
    context.make_current()
    names = [GL.glGetString(name).decode() for name in (GL.GL_RENDERER, GL.GL_VERSION)]
    context.free()
    return ", OpenGL ".join(names)
