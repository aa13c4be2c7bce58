"""The filter of system calls that a shut-in program runs under, as BPF for the kernel.

Ours: a list of refusals, because the standard library of Python needs most of the rest, and which calls it needs
differs between versions of libc. Numbers are those of Linux's `unistd` headers.
"""

from __future__ import annotations

import errno
import platform
import signal
import socket
import struct

from merton.errors import InputError

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH of <linux/audit.h>."""

REFUSED = {  # name: (number on x86_64, number on aarch64); None: the call does not exist there
    # other processes' memory, registers and descriptors
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # parts of the kernel that a program which scores answers never needs, and that had holes
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "lookup_dcookie": (212, 18),
    "syslog": (103, 116),
    # the machine
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    # memory that no limit of a process counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "vmsplice": (278, 75),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
"""Calls that fail with EPERM."""

CLONE, CLONE3, IOCTL, SOCKET, SOCKETPAIR = (56, 220), (435, 435), (16, 29), (41, 198), (53, 199)
MMAP, RT_SIGACTION, SETSOCKOPT = (9, 222), (13, 134), (54, 208)
"""Calls whose arguments decide; numbers as above."""
NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET and NEWTIME in the flags of clone."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into a terminal for its owner."""
SOCKET_MEMORY = (7, 32, 26)
"""SO_SNDBUF, SO_SNDBUFFORCE and SO_ATTACH_FILTER, of the level SOL_SOCKET: what a socket may hold in the kernel."""
SHARED_ANONYMOUS = 0x21
"""The bits of MAP_SHARED, or MAP_SHARED_VALIDATE, and of MAP_ANONYMOUS in the flags of mmap."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def seccomp_filter(machine: str | None = None) -> bytes:
    """The filter for a machine ("x86_64" or "aarch64", this one by default): an array of struct sock_filter.

    Raises:
        InputError: for another machine.
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        raise InputError(f"no filter of system calls for {machine!r}; there is one for: {', '.join(ARCHITECTURES)}")
    column = list(ARCHITECTURES).index(machine)
    refuse = _ERROR | errno.EPERM
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # x32: other numbers for the same calls
        (_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, refuse),
    ]
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    steps += _by_arguments(column, refuse)
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _by_arguments(column: int, refuse: int) -> list[tuple[int, int, int, int]]:
    """The end of the filter: calls that their arguments decide, and all others, which are allowed.

    Args:
        column: of the machine.
        refuse: what a refused call returns.
    """
    # its flags lie in memory, where no filter reads: libc then takes clone
    steps = [(_EQUAL, 0, 1, CLONE3[column]), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    steps += [
        (_EQUAL, 0, 4, CLONE[column]),
        (_LOAD, 0, 0, _ARGUMENTS),
        (_ANY_BIT, 0, 1, NEW_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    steps += [
        (_EQUAL, 0, 5, IOCTL[column]),
        (_LOAD, 0, 0, _ARGUMENTS + 8),
        (_EQUAL, 1, 0, TERMINAL_INPUT[0]),
        (_EQUAL, 0, 1, TERMINAL_INPUT[1]),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    # shared memory outlives MADV_DONTNEED, and all but one page of it munmap: neither rlimit nor /proc shows it
    steps += [
        (_EQUAL, 0, 5, MMAP[column]),
        (_LOAD, 0, 0, _ARGUMENTS + 24),
        (_AND, 0, 0, SHARED_ANONYMOUS),
        (_EQUAL, 0, 1, SHARED_ANONYMOUS),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    # a process that ignores SIGCHLD, by handler or flag, never gets the processor time of its children
    steps += [
        (_EQUAL, 0, 8, RT_SIGACTION[column]),
        (_LOAD, 0, 0, _ARGUMENTS),
        (_EQUAL, 0, 5, signal.SIGCHLD),
        (_LOAD, 0, 0, _ARGUMENTS + 8),
        (_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 12),
        (_EQUAL, 1, 0, 0),  # it only asks
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    # a socket then holds at most the system's default, which the guard counts
    steps += [
        (_EQUAL, 0, 3 + len(SOCKET_MEMORY), SETSOCKOPT[column]),
        (_LOAD, 0, 0, _ARGUMENTS + 16),
        *((_EQUAL, len(SOCKET_MEMORY) - place, 0, option) for place, option in enumerate(SOCKET_MEMORY)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
    ]
    # not only no network: AF_VSOCK reaches the host of a virtual machine past every network namespace
    steps += [
        (_EQUAL, 1, 0, SOCKETPAIR[column]),
        (_EQUAL, 0, 3, SOCKET[column]),
        (_LOAD, 0, 0, _ARGUMENTS),
        (_EQUAL, 1, 0, socket.AF_UNIX),
        (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return steps
