"""The whole state of a MuJoCo simulation, exactly: what follows `restore` is what followed `saved`, to the last bit.

Runs in a hosted world's own environment.
"""

from __future__ import annotations

import mujoco
import numpy as np

WHOLE = mujoco.mjtState.mjSTATE_INTEGRATION
"""All that the next step depends on, the solver's warm start among it."""


def saved(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """The state as one array of float64, of this model alone."""
    state = np.empty(mujoco.mj_stateSize(model, WHOLE))
    mujoco.mj_getState(model, data, state, WHOLE)
    return state


def restore(model: mujoco.MjModel, data: mujoco.MjData, state: np.ndarray) -> None:
    """Go back to what `saved` gave, and compute what follows from it, such as the places of bodies."""
    mujoco.mj_setState(model, data, state, WHOLE)
    mujoco.mj_forward(model, data)
    mujoco.mj_setState(model, data, state, WHOLE)  # mj_forward has overwritten the warm start


def renderer() -> str:
    """The name of what draws, such as "llvmpipe (LLVM 15.0.6, 256 bits)": other renderers give other pixels."""
    from OpenGL import GL

    context = mujoco.GLContext(8, 8)
    context.make_current()
    name = GL.glGetString(GL.GL_RENDERER)
    context.free()
    return name.decode()
