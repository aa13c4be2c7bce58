"""Becomes a sandbox: gives up root, and has bubblewrap or the kernel's namespaces shut its own process in.

A program of its own, run as a file by the Python of Merton, which imports the standard library alone. It gets a plan
(`merton_studies.harness.confinement.engines.plan`) by marshal, which costs no import, and descriptors: standard input
is the job of the warden, 1 and 2 are the program's, the others are named in the plan and move to the
numbers of DESCRIPTORS.
"""

from __future__ import annotations

import ctypes
import fcntl
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes as long as the rest
    from typing import Any, NoReturn

DESCRIPTORS = {"ask": 3, "reply": 4, "report": 5, "info": 6, "filter": 7, "go": 8, "held": 9}
STAGE = "/tmp"
"""Folder in which mounts are put together; the machine's own /tmp is covered in this process's mount namespace."""
DEVICES = ("null", "full", "random", "urandom")
"""Not zero: a shared mapping of it is memory that no limit of a process counts."""

NOSUID, NODEV, BIND, RECURSIVE, PRIVATE, REMOUNT, READ_ONLY, NOEXEC = 2, 4, 4096, 16384, 1 << 18, 32, 1, 8
NEW_MOUNTS, NEW_CGROUP, NEW_UTS, NEW_IPC, NEW_USER, NEW_PID, NEW_NETWORK = (
    0x00020000,
    0x02000000,
    0x04000000,
    0x08000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
DEATH_SIGNAL, DUMPABLE, DROP_BOUND, NO_NEW_RIGHTS, SECCOMP = 1, 4, 24, 38, 22

KILL, CHILD = 9, 17  # importing signal takes as long as all of this

LIBC = ctypes.CDLL(None, use_errno=True)
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
MOUNT_SETATTR = 442


class MountAttributes(ctypes.Structure):
    """struct mount_attr of <linux/mount.h>."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class FilterProgram(ctypes.Structure):
    """struct sock_fprog of <linux/filter.h>."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def call(what: str, result: int) -> None:
    """Raise OSError if a call of libc failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """The system call of this name, with an error for a failure."""
    done = LIBC.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    call(f"mount {target}", done)


def unshare(flags: int) -> None:
    """The system call of this name, with an error for a failure."""
    call("unshare", LIBC.unshare(flags))


def make_place(source: str, target: str) -> None:
    """An empty folder or file to mount `source` on."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "a").close()


def open_paths(binds: list[list[str]]) -> list[int]:
    """A descriptor of each source, which stays valid when a mount covers its path."""
    return [os.open(source, os.O_PATH) for source, _ in binds]


def bind(number: int, target: str, writable: bool = False) -> None:
    """Mount an opened path, read-only with all mounts below it."""
    source = f"/proc/self/fd/{number}"
    make_place(source, target)
    mount(source, target, "", BIND | RECURSIVE)
    attributes = MountAttributes(set=0 if writable else 1 | 2)  # read-only, no setuid
    done = LIBC.syscall(MOUNT_SETATTR, -100, target.encode(), 0x8000, ctypes.byref(attributes), 32)
    call(f"read-only {target}", done)
    os.close(number)


def stage(plan: dict[str, Any]) -> None:
    """As root: mount all sources below a folder that everybody may enter, since root's home is closed to others."""
    unshare(NEW_MOUNTS)
    mount("", "/", "", RECURSIVE | PRIVATE)
    opened = open_paths(plan["binds"])
    mount("tmpfs", STAGE, "tmpfs", NOSUID | NODEV, "mode=755,size=1m")
    for index, number in enumerate(opened):
        bind(number, f"{STAGE}/{index}")
        plan["binds"][index][0] = f"{STAGE}/{index}"


def give_up_root(uid: int) -> None:
    """Become another user: RLIMIT_NPROC does not bind root, and files of root are no business of the program."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # without this, /proc/self would stay root's
    call("dumpable", LIBC.prctl(DUMPABLE, 1, 0, 0, 0))
    os.chdir("/")


def bubblewrap(plan: dict[str, Any]) -> NoReturn:
    """Become bwrap.

    Not with --die-with-parent: killed in the moment in which it makes the first process, it leaves that behind. The
    warden ends with Merton instead; and the reading end of `info` is held open, for a broken pipe would be that moment.
    """
    words = [plan["bwrap"], "--unshare-all", "--new-session", "--as-pid-1", "--clearenv"]
    words += ["--cap-drop", "ALL", "--hostname", "sandbox"]
    for source, target in plan["binds"]:
        words += ["--ro-bind", source, target]
    for content, name in plan["links"]:
        words += ["--symlink", content, name]
    for folder in plan["masks"]:
        words += ["--size", "4096", "--tmpfs", folder, "--remount-ro", folder]
    words += ["--proc", "/proc", "--size", "4096", "--tmpfs", "/dev"]
    for name in DEVICES:
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    words += ["--remount-ro", "/dev"]
    words += ["--size", str(plan["bytes"]), "--tmpfs", plan["room"], "--remount-ro", "/", "--chdir", "/"]
    words += ["--seccomp", str(DESCRIPTORS["filter"]), "--info-fd", str(DESCRIPTORS["info"]), "--", *plan["command"]]
    os.execv(plan["bwrap"], words)


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    call("death signal", LIBC.prctl(DEATH_SIGNAL, KILL, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def namespaces(plan: dict[str, Any]) -> NoReturn:
    """Enter namespaces of our own; this process stays outside and waits, its child is the first one inside."""
    uid, gid = os.getuid(), os.getgid()
    end_with_parent(plan["parent"])  # after giving up root, which would forget it
    unshare(NEW_USER | NEW_MOUNTS | NEW_PID | NEW_NETWORK | NEW_IPC | NEW_UTS | NEW_CGROUP)
    for name, content in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)
    ready, gate = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(gate)
        call("death signal", LIBC.prctl(DEATH_SIGNAL, KILL, 0, 0, 0))
        if not os.read(ready, 1):  # the parent is gone
            os._exit(1)
        os.close(ready)
        try:
            enter(plan)
        except OSError as error:
            os.write(2, f"sandbox: {error}\n".encode())
        os._exit(125)
    os.write(DESCRIPTORS["info"], b'{"child-pid": %d}' % child)
    os.write(gate, b"x")
    os.closerange(3, 256)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) % 256)


def enter(plan: dict[str, Any]) -> NoReturn:
    """As the first process inside: build the file system, drop every right, become the warden."""
    os.close(DESCRIPTORS["info"])
    os.setsid()
    mount("", "/", "", RECURSIVE | PRIVATE)
    opened = open_paths(plan["binds"])
    devices = [os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES]
    mount("tmpfs", STAGE, "tmpfs", NOSUID | NODEV, "mode=755,size=1m,nr_inodes=1k")
    for number, (_, target) in zip(opened, plan["binds"], strict=True):
        bind(number, STAGE + target)
    for content, name in plan["links"]:
        os.symlink(content, STAGE + name)
    for folder in plan["masks"]:
        mount("tmpfs", STAGE + folder, "tmpfs", NOSUID | NODEV | READ_ONLY, "size=4k,nr_inodes=2,mode=555")
    for name, number in zip(DEVICES, devices, strict=True):
        bind(number, f"{STAGE}/dev/{name}", writable=True)
    for folder in ("proc", plan["room"].strip("/")):
        os.makedirs(f"{STAGE}/{folder}")
    mount("proc", f"{STAGE}/proc", "proc", NOSUID | NODEV | NOEXEC)
    options = f"mode=700,size={plan['bytes']},nr_inodes={plan['files']}"
    mount("tmpfs", STAGE + plan["room"], "tmpfs", NOSUID | NODEV, options)
    os.chdir(STAGE)
    call("pivot_root", LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    call("umount", LIBC.umount2(b".", 2))
    os.chdir("/")
    mount("", "/", "", REMOUNT | BIND | READ_ONLY | NOSUID | NODEV)
    call("sethostname", LIBC.sethostname(b"sandbox", 7))
    drop_rights()
    os.execve(plan["command"][0], plan["command"], {})


def drop_rights() -> None:
    """Drop all capabilities, also for after any exec, and set the filter of system calls."""
    right = 0
    while LIBC.prctl(DROP_BOUND, right, 0, 0, 0) == 0:
        right += 1
    call("no new rights", LIBC.prctl(NO_NEW_RIGHTS, 1, 0, 0, 0))
    with open(DESCRIPTORS["filter"], "rb") as file:
        file.seek(0)
        steps = file.read()
    program = FilterProgram(len(steps) // 8, steps)
    call("seccomp", LIBC.prctl(SECCOMP, 2, ctypes.byref(program), 0, 0))


def move(given: dict[str, int]) -> None:
    """Move each descriptor to its number, and close all others."""
    high = {name: fcntl.fcntl(number, fcntl.F_DUPFD, 64) for name, number in given.items()}
    os.closerange(3, 64)
    for name, number in high.items():
        os.dup2(number, DESCRIPTORS[name], inheritable=True)
    os.closerange(64, 256)


def main() -> None:
    """Run the plan behind the descriptor in the first argument."""
    with open(int(sys.argv[1]), "rb") as file:
        plan = marshal.load(file)
    try:
        move(plan["descriptors"])
        LIBC.signal(CHILD, None)  # ignored by Merton's parent, it would be ignored in here, too
        if plan["uid"] is not None:
            stage(plan)
            give_up_root(plan["uid"])
        if plan["engine"] == "bubblewrap":
            bubblewrap(plan)
        namespaces(plan)
    except OSError as error:
        os.write(2, f"sandbox: {error}\n".encode())
        os._exit(125)


if __name__ == "__main__":
    main()
