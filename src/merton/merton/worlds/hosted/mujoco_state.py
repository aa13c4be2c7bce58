"""The whole state of a MuJoCo simulation, exactly: what follows `restore` is what followed `saved`, to the last bit.

All of MjData is kept, what a step leaves behind too (places of bodies, contacts, the solver's warm start). A picture
shows the places that the last step computed, a physics step before its positions, so that mj_forward would move it.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np


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


def integration_state(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """All that the next step depends on, the solver's warm start among it, as float64; of this MjModel alone.

    For MuJoCo before 3.4, which cannot write one MjData into another from Python.
    """
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    return state


def set_integration_state(model: mujoco.MjModel, data: mujoco.MjData, state: np.ndarray) -> None:
    """Go back to an `integration_state`; pictures are as they were in a world whose steps end with mj_forward."""
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_forward(model, data)
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)  # mj_forward changes the warm start
