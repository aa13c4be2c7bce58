"""Programs that try to get out of a sandbox, to outlast it or to exhaust the machine; each says which end it must have.

Every program finds `around.json` beside it: paths, a process, ports and system calls of the machine outside. One that
tries to get out prints a line for each success, beginning with "OUT"; there must be none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = """
import json, os, sys, time
AROUND = json.load(open("/sandbox/code/around.json"))
def attempt(what, action):
    try:
        result = action()
    except (OSError, ImportError, ValueError, MemoryError) as error:
        print("refused:", what, error)
    else:
        print("OUT:", what, result)
"""

LIBC = """
import ctypes
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype, FAILED = ctypes.c_void_p, 2**64 - 1
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
"""


@dataclass(frozen=True)
class Hostile:
    """A program, the limits it runs under that differ from SMALL, and how it must end."""

    name: str
    code: str
    reason: str = ""
    """A regular expression that the whole reason must match; empty for a program that ends well."""
    limits: Mapping[str, float] = field(default_factory=dict)
    serves: bool = False
    prints: str = ""
    """A regular expression that must be found in standard output."""


SMALL = {"cpu_s": 5, "wall_s": 60.0, "memory": 256 << 20, "processes": 12, "room": 4 << 20, "files": 200}
"""Limits of all. A time that is not what a program is about is ample: the machine may be busy."""

GETS_OUT = [
    Hostile(
        "network",
        """
import socket
for host in ("1.1.1.1", "127.0.0.1", "0.0.0.0"):
    attempt(host, lambda: socket.create_connection((host, AROUND["port"]), timeout=2))
attempt("listen", lambda: socket.create_server(("127.0.0.1", 0)))
attempt("name", lambda: socket.getaddrinfo("example.org", 80))
""",
    ),
    Hostile(
        "other_sockets",
        """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 40, 38):  # 40: vsock, 38: alg
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt((family, kind), lambda: socket.socket(family, kind))
""",
    ),
    Hostile(
        "sockets_of_others",
        """
import socket
own = socket.socket(socket.AF_UNIX)
attempt("abstract", lambda: own.connect("\\0" + AROUND["abstract"]))
attempt("by path", lambda: own.connect(AROUND["socket"]))
""",
    ),
    Hostile(
        "other_folders",
        """
for path in ("../" * 12 + "etc/passwd", "/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/sys", "/boot",
             "/sandbox/../etc/hostname", *AROUND["paths"]):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
""",
    ),
    Hostile(
        "writes_system",
        """
for path in ("/usr/bin/python3", "/usr/x", "/x", "/dev/x", "/dev/shm/x", "/proc/self/exe", "/proc/sysrq-trigger",
             "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/inputs/given/a.txt", "/inputs/x"):
    attempt(path, lambda: open(path, "r+b" if os.path.exists(path) else "wb"))
attempt("remove", lambda: os.remove("/inputs/given/a.txt"))
attempt("chmod", lambda: os.chmod("/inputs/given/a.txt", 0o777))
attempt("rename", lambda: os.rename("/inputs/given", "/inputs/taken"))
print(open("/inputs/given/a.txt").read())
""",
        prints="as given",
    ),
    Hostile(
        "kills_others",
        """
import signal
for pid in (AROUND["pid"], -AROUND["pid"]):
    attempt(pid, lambda: os.kill(pid, 9))
for pid in (os.getppid(), 1, -1):
    try:
        os.kill(pid, 9)
        os.kill(pid, signal.SIGTERM)
    except OSError:
        pass
attempt("group", lambda: os.killpg(AROUND["pid"], 9))
print("pids", sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
""",
        prints=r"pids \[1, 2\]",
    ),
    Hostile(
        "first_process",
        """
for name in ("environ", "mem", "maps", "root", "cwd", "fd", "fd/5", "fd/0", "io", "auxv", "syscall"):
    path = f"/proc/1/{name}"
    attempt(path, lambda: os.listdir(path) if name in ("root", "cwd", "fd") else open(path, "rb").read(10))
attempt("mem for writing", lambda: open("/proc/1/mem", "wb"))
attempt("oom", lambda: open("/proc/1/oom_score_adj", "w").write("1000"))
""",
    ),
    Hostile(
        "calls",
        """
import ctypes
LIBC = ctypes.CDLL(None, use_errno=True)
for name, number in AROUND["calls"].items():
    LIBC.syscall.restype = ctypes.c_long
    done = LIBC.syscall(number, 0, 0, 0, 0, 0, 0)
    print("refused" if done == -1 and ctypes.get_errno() == 1 else "OUT", name, done, ctypes.get_errno())
clone, clone3 = AROUND["clone"]
for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    done = LIBC.syscall(clone, flag | 17, 0, 0, 0, 0)
    if done == 0:
        os._exit(0)
    print("refused" if done == -1 and ctypes.get_errno() == 1 else "OUT", hex(flag), done, ctypes.get_errno())
print("refused" if LIBC.syscall(clone3, 0, 0) == -1 and ctypes.get_errno() == 38 else "OUT", "clone3")
""",
    ),
    Hostile(
        "more_rights",
        """
attempt("setuid", lambda: os.setuid(0))
attempt("setgid", lambda: os.setgid(0))
attempt("setgroups", lambda: os.setgroups([0]))
attempt("chroot", lambda: os.chroot("/sandbox/tmp"))
attempt("mknod", lambda: os.mknod("/sandbox/tmp/disk", 0o060666, os.makedev(8, 0)))
attempt("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt("nice", lambda: os.nice(-1))
import resource
attempt("limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000)))
for line in open("/proc/self/status"):
    if line.split(":")[0] in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"):
        print(*line.split())
""",
        prints=r"(Cap\w+: 0{16}\n){5}NoNewPrivs: 1\nSeccomp: 2",
    ),
    Hostile(
        "chroot_escape",
        """
os.mkdir("/sandbox/tmp/jail")
attempt("chroot", lambda: os.chroot("/sandbox/tmp/jail"))
for _ in range(64):
    os.chdir("..")
print(sorted(os.listdir(".")), AROUND["paths"])
attempt("root of another", lambda: os.listdir("/proc/1/root"))
if os.path.exists("/etc") or os.path.exists("/root"):
    print("OUT")
""",
    ),
    Hostile(
        "shared_memory",
        """
import ctypes
LIBC = ctypes.CDLL(None, use_errno=True)
from multiprocessing import shared_memory
attempt("POSIX", lambda: shared_memory.SharedMemory("merton_hostile", create=True, size=4096))
attempt("/dev/shm", lambda: open("/dev/shm/x", "w"))
attempt("memfd", lambda: os.memfd_create("x"))
for name in ("shmget", "semget", "msgget"):
    done = getattr(LIBC, name)(0, 4096, 0o1600) if name != "msgget" else LIBC.msgget(0, 0o1600)
    print("refused" if done == -1 else "OUT", name)
""",
    ),
    Hostile(
        "imports_merton",
        """
for path in ["", *AROUND["paths"], "/usr/lib/python3/dist-packages", "/usr/local/lib"]:
    sys.path.insert(0, path)
for module in ("merton", "numpy", "torch", "pip", "setuptools"):
    attempt(module, lambda: __import__(module))
""",
    ),
    Hostile(
        "environment",
        """
print("names", sorted(os.environ))
told = " ".join([*os.environ.values(), *(open(path).read() for path in ("/proc/1/cmdline", "/proc/mounts"))])
for secret in (AROUND["secret"], *AROUND["paths"]):
    if secret in told:
        print("OUT:", secret)
""",
        prints=r"names \['HOME', 'LANG', 'PATH', 'TMPDIR'\]",
    ),
    Hostile(
        "descriptors",
        """
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try:
        path = os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # that of the listing
        continue
    print(name, path)
    if int(name) > 2 or not (path.startswith("pipe:") or path == "/dev/null"):
        print("OUT:", name, path)
""",
    ),
    Hostile(
        "own_memory",
        """
import ctypes
libc = ctypes.CDLL(None)
place = next(line.split()[-1] for line in open("/proc/self/maps") if "libc" in line)
before = open(place, "rb").read()
with open("/proc/self/mem", "r+b", buffering=0) as memory:  # a process may spoil its own copy
    memory.seek(ctypes.cast(libc.abort, ctypes.c_void_p).value)
    memory.write(bytes(16))
if open(place, "rb").read() != before:
    print("OUT: the library on disk")
exe = os.open("/proc/self/exe", os.O_RDONLY)
attempt("running file", lambda: os.open(f"/proc/self/fd/{exe}", os.O_WRONLY))
attempt("through a link", lambda: os.link("/proc/self/exe", "/usr/bin/copy"))
attempt("mapping", lambda: os.open("/proc/self/map_files", os.O_RDONLY) and os.open("/dev/mem", os.O_RDONLY))
""",
    ),
]

TOO_LONG = "It ran longer than 0.7 s and was ended."
TOO_MUCH_MEMORY = "Its processes together held more than 256 MB of memory and were ended."
TOO_MUCH_TIME = "Its processes used more than 0.2 s of processor time and were ended."

OUTLASTS = [
    Hostile("loops", "while True: pass", TOO_MUCH_TIME, {"cpu_s": 0.2}),
    Hostile(
        "loops_in_children",
        """
import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
for _ in range(3):
    os.fork()
while True:
    pass
""",
        TOO_MUCH_TIME,
        {"cpu_s": 0.2},
    ),
    Hostile(
        "loops_in_children_that_are_not_waited_for",
        """
import signal
def ignores():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    return "SIGCHLD"
attempt("ignored", ignores)
if signal.getsignal(signal.SIGCHLD) != signal.SIG_DFL:
    print("OUT: it was ignored already")
while True:
    if os.fork() == 0:
        while time.process_time() < 0.02:
            pass
        os._exit(0)
    os.wait()
""",
        TOO_MUCH_TIME,
        {"cpu_s": 0.2},
    ),
    Hostile(
        "loops_in_children_of_a_flag",
        LIBC
        + """
import platform, subprocess
action = (ctypes.c_uint64 * 4)(0, 2, 0, 0)  # SIG_DFL with SA_NOCLDWAIT
number = 13 if platform.machine() == "x86_64" else 134
if LIBC.syscall(number, 17, ctypes.byref(action), None, ctypes.c_size_t(8)) == 0:
    print("OUT: SA_NOCLDWAIT")
print(subprocess.run("echo a | cat", shell=True, capture_output=True).stdout)
""",
        prints="b'a",
    ),
    Hostile("sleeps", "time.sleep(3600)", TOO_LONG, {"wall_s": 0.7}),
    Hostile(
        "ignores_signals",
        """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    time.sleep(1)
""",
        TOO_LONG,
        {"wall_s": 0.7},
    ),
    Hostile(
        "daemon",
        """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 64)
        while True:
            time.sleep(0.01)
    os._exit(0)
os.wait()
""",
        "It left 1 process running, which was ended.",
    ),
    Hostile(
        "zombies",
        """
for _ in range(8):
    child = os.fork()
    if child == 0:
        os._exit(0)
    while open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
print("all")
""",
        prints="all",
    ),
    Hostile("dies", "os.kill(os.getpid(), 11)", "It was ended by the signal SIGSEGV."),
    Hostile("closes_all", "os.closerange(0, 64)\ntime.sleep(3600)", TOO_LONG, {"wall_s": 0.7}),
]

EXHAUSTS = [
    Hostile(
        "fork_bomb",
        """
begun = time.time()
while time.time() < begun + 20:
    try:
        if os.fork() == 0:
            os.closerange(2, 3)  # the tracebacks of all would mix
    except OSError:
        break
count = sum(name.isdigit() for name in os.listdir("/proc"))
if count > 13:  # with the first one
    print("OUT:", count)
os.fork()
""",
        r"It ended with exit code 1: BlockingIOError: .* \(processes and threads are limited to 12\)"
        "|It left .* running, which were ended.",
    ),
    Hostile(
        "threads",
        "import threading\nfor _ in range(100): threading.Thread(target=time.sleep, args=(0.2,), daemon=True).start()",
        r"It ended with exit code 1: RuntimeError: can't start new thread \(processes and threads are limited to 12\)",
    ),
    Hostile(
        "fills_memory",
        "held = []\nwhile True: held.append(bytearray(16 << 20))",
        r"It ended with exit code 1: MemoryError \(memory is limited to 256 MB\)",
    ),
    Hostile(
        "fills_memory_together",
        "for _ in range(3): os.fork()\nheld = bytearray(b'x') * (100 << 20)\ntime.sleep(60)",
        TOO_MUCH_MEMORY,
    ),
    Hostile(
        "shared_memory_given_back",
        """
import mmap
def held():
    memory = mmap.mmap(-1, 200 << 20)
    for place in range(0, len(memory), 1 << 20):  # a mapping that was touched, and yet is never resident
        memory[place : place + (1 << 20)] = bytes(1 << 20)
        memory.madvise(mmap.MADV_DONTNEED)
for _ in range(8):
    if os.fork() == 0:
        attempt("shared", held)
        sys.stdout.flush()
        os._exit(0)
for _ in range(8):
    os.wait()
""",
    ),
    Hostile(
        "shared_memory_unmapped_but_a_page",
        LIBC
        + """
for _ in range(4):
    place = LIBC.mmap(None, 100 << 20, 3, 0x21, -1, 0)
    if place == FAILED:
        break
    ctypes.memset(place, 1, 100 << 20)
    LIBC.munmap(place + 4096, (100 << 20) - 4096)
    print("OUT: 100 MB of a mapping of a page")
""",
    ),
    Hostile(
        "shared_memory_of_a_device",
        """
import mmap
for name in os.listdir("/dev"):
    for access in (mmap.ACCESS_READ, mmap.ACCESS_WRITE):
        attempt(name, lambda: mmap.mmap(os.open(f"/dev/{name}", os.O_RDWR), 1 << 20, access=access))
""",
    ),
    Hostile(
        "memory_in_a_pipe",
        LIBC
        + """
class Piece(ctypes.Structure):
    _fields_ = [("place", ctypes.c_void_p), ("length", ctypes.c_size_t)]
place = LIBC.mmap(None, 4 << 20, 3, 0x22, -1, 0)
ctypes.memset(place, 1, 4096)
if LIBC.vmsplice(os.pipe()[1], ctypes.byref(Piece(place, 4096)), ctypes.c_size_t(1), 0) >= 0:
    print("OUT: a page that no process has mapped")
""",
    ),
    Hostile(
        "memory_in_landlock_rulesets",
        LIBC
        + """
class Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64)]
for size, what in ((16, Ruleset(0, 1)), (8, Ruleset(1, 0))):  # kernels before 6.7 know no rules of ports
    if LIBC.syscall(444, ctypes.byref(what), ctypes.c_size_t(size), 0) >= 0:
        print("OUT: a set of rules in memory of the kernel")
""",
    ),
    Hostile(
        "pair_of_another_family",
        LIBC
        + """
pair = (ctypes.c_int * 2)()
for family in (1, 2):  # AF_UNIX, which is allowed, and AF_INET, for which the kernel alone says EOPNOTSUPP
    ctypes.set_errno(0)
    made = LIBC.socketpair(family, 1, 0, pair)
    if (made == 0) != (family == 1) or (family == 2 and ctypes.get_errno() != 97):
        print("OUT: family", family, made, ctypes.get_errno())
""",
    ),
    Hostile(
        "memory_in_sockets",
        """
import socket
kept = []
def larger(own, option):
    own.setsockopt(socket.SOL_SOCKET, option, 1 << 30)
    return option
for option in (7, 32, 26):
    attempt("option", lambda: larger(socket.socketpair()[0], option))
for _ in range(10):
    if os.fork() == 0:
        break
for own in [own for _ in range(25) for own in socket.socketpair()]:
    own.setblocking(False)
    kept.append(own)
    try:
        while True:
            own.send(bytes(1 << 16))
    except BlockingIOError:
        pass
time.sleep(60)
""",
        "Its processes together held more than 160 MB of memory and were ended.",
        {"memory": 160 << 20},
    ),
    Hostile(
        "tables_of_pages",
        LIBC
        + """
for number in range(60000):  # a page each, of zeros that are never resident, and two tables of a page for it
    place = LIBC.mmap((1 << 40) + (number << 30), 4096, 3, 0x100022, -1, 0)
    if place != FAILED:
        ctypes.string_at(place, 1)
time.sleep(60)
""",
        TOO_MUCH_MEMORY,
    ),
    Hostile(
        "memory_of_threads_without_their_first",
        """
import ctypes, platform, threading
for _ in range(2): os.fork()
def hold():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    held = bytearray(b"x") * (100 << 20)
    time.sleep(60)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
""",
        TOO_MUCH_MEMORY,
    ),
    Hostile(
        "fills_disk",
        "for number in range(100): open(f'{number}', 'wb').write(bytes(1 << 18))",
        r"It ended with exit code 1: OSError: .* \(all files together are limited to 4 MB and 200\)",
    ),
    Hostile(
        "fills_disk_elsewhere",
        "for number in range(100): open(f'/tmp/{number}', 'wb').write(bytes(1 << 18))",
        r"It ended with exit code 1: OSError: .* \(all files together are limited to 4 MB and 200\)",
    ),
    Hostile(
        "many_files",
        "for number in range(10**6): open(f'{number}', 'w').close()",
        r"It ended with exit code 1: OSError: .* \(all files .*200\)"
        "|It made more than 200 files and was ended.",
    ),
    Hostile(
        "big_file",
        "open('x', 'wb').truncate(1 << 40)",
        r"It ended with exit code 1: OSError: .*File too large \(a file is limited to 16 MB\)",
    ),
    Hostile(
        "open_files",
        "held = [open('/dev/null') for _ in range(1000)]",
        r"It ended with exit code 1: OSError: .*Too many open files.* \(open files are limited to 64\)",
    ),
    Hostile(
        "floods_output",
        "line = b'x' * (1 << 16)\nfor _ in range(1 << 14): os.write(1, line)",
        "It wrote more than 1 MB to standard output and was ended.",
        {"printed": 1 << 20},
    ),
    Hostile(
        "floods_errors",
        "line = b'x' * (1 << 16)\nfor _ in range(1 << 14): os.write(2, line)",
        "It wrote more than 1 MB to standard error and was ended.",
        {"printed": 1 << 20},
    ),
    Hostile(
        "floods_asks",
        "while True: os.write(3, b'1\\n')",
        "It asked more than 50 times and was ended.",
        {"requests": 50},
        serves=True,
    ),
    Hostile(
        "asks_without_end",
        "while True: os.write(3, b'1' * 4096)",
        "It asked with a line of more than 64 kB and was ended.",
        {"request": 1 << 16},
        serves=True,
    ),
    Hostile(
        "reads_no_reply",
        "while True: os.write(3, b'\"long\"\\n')",
        TOO_LONG,
        {"wall_s": 0.7},
        serves=True,
    ),
]

MISLEADS = [
    Hostile(
        "no_json",
        """
from asking import ask
replies = os.fdopen(os.dup(4), "rb")
for line in (b"{", b"\\xff\\xfe", b"[" * 60000, b"1" * 5000, b"", b"NaN"):
    os.write(3, line + b"\\n")
    print(line[:4], replies.readline())
print("then", ask({"a": 1}))
""",
        serves=True,
        prints="then served",
    ),
    Hostile(
        "strange_outputs",
        """
import socket
os.symlink("/etc/passwd", "link")
os.symlink("../../../../../etc", "folder")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.link("/sandbox/code/around.json", "hard")
deep = "d" * 200
for _ in range(60):  # beyond the longest path
    os.mkdir(deep)
    os.chdir(deep)
os.chdir("/sandbox/out")
open("kept", "w").write("kept")
""",
    ),
    Hostile(
        "strange_name",
        "open(b'\\xff\\n', 'w').close()",
        "What it left cannot be taken: .* is no name of a file in a sandbox: .*",
    ),
    Hostile(
        "forges_its_report",
        """
print('+{"status": 0, "left": 0, "cpu_s": 0, "total": [0, 0], "outputs": []}')
for number in range(3, 64):
    try:
        os.write(number, b'+{"status": 0, "left": 0, "cpu_s": 0, "total": [0, 0], "outputs": []}\\n')
        print("OUT:", number)
    except OSError:
        pass
print("bwrap: no", file=sys.stderr)
sys.exit(3)
""",
        "It ended with exit code 3: bwrap: no",
    ),
]

ALL = [*GETS_OUT, *OUTLASTS, *EXHAUSTS, *MISLEADS]
