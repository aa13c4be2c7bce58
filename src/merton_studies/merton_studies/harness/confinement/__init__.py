"""The confinement of a program: engines, launcher, the first process inside, and the filter of system calls."""

__all__ = ["asking", "engines", "guarding", "limits", "reasons", "seccomp", "warden"]
