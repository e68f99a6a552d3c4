"""Isolation of a program on this machine: the command that starts its interpreter, and the specification it gets.

    bubblewrap   namespaces and file tree by bwrap: a small folder, and read-only the interpreter, /lib and /usr/lib
    namespaces   the same, made by the interpreter itself with unshare(2) and pivot_root(2)

All of /lib and /usr/lib can be read, since it holds the system's libraries, and it is not known beforehand which of
them the interpreter loads; packages installed there are hidden.

User and number of processes: root runs each program under its own user id, so that `RLIMIT_NPROC` counts only that
program. Any other user gets a user namespace, which also counts separately. The kernel does not apply the limit to root
of a user namespace; programs there run at a lower priority, so that counting from outside stays ahead of a program that
forks for ever.
"""

import marshal
import math
import os
import platform
import shutil
import sys
import sysconfig
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Literal

from scalerl.errors import SandboxUnavailable
from scalerl.sandbox.limits import Limits
from scalerl.sandbox.system_calls import seccomp_filter

IsolationName = Literal["bubblewrap", "namespaces"]
STRONGEST_FIRST: tuple[IsolationName, ...] = ("bubblewrap", "namespaces")

RUN_MARSHALLED = "import marshal, sys; exec(marshal.loads(bytes.fromhex(sys.argv.pop(1))))"
"""Marshalled code, because compiling the text would take as long as starting the interpreter."""
INSIDE = Path(__file__).with_name("inside.py")
FOLDER = "/sandbox"
DEVICE_FILES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OFFERED = ("numpy",)
"""Packages that programs may import besides the standard library."""
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # fixes the order of sets
    "PYTHONINTMAXSTRDIGITS": "0",  # integers of any length, as before Python 3.11 and in other graders
    "OPENBLAS_NUM_THREADS": "1",  # NumPy would start a thread for every core
    "HOME": FOLDER,
    "TMPDIR": FOLDER,
}
"""Environment of a program."""

UNCOUNTED_NICENESS = 15
"""Niceness of programs that the kernel allows to fork beyond their limit."""
FIRST_USER_ID, NUM_USER_IDS = 1 << 20, 1 << 28
_next_user_id = count(os.getpid() * 4096)


def is_real_root() -> bool:
    """True for root of the machine, not of a user namespace: needs no user namespace, and ignores RLIMIT_NPROC."""
    return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]


def prepared(isolation: IsolationName, limits: Limits, fds: dict[str, int]) -> list[str]:
    """The command for one program whose pipes are `fds`, to run in ENVIRONMENT."""
    real_root = is_real_root()
    uid = FIRST_USER_ID + next(_next_user_id) % NUM_USER_IDS if real_root else None
    # What RLIMIT_NPROC counts besides the program's own: the supervisor, and a launcher in the user namespace.
    others = 1 if isolation == "bubblewrap" else 2
    if real_root:
        others = 0
    readable, links = interpreter_files()
    hidden = [path for path in site_packages() if any(_below(path, root) for root in readable)]
    spec: dict[str, Any] = {
        **fds,
        "makes_namespaces": isolation == "namespaces",
        "new_user_namespace": not real_root,
        "root": "/proc",  # always exists, holds nothing the program needs, and is covered by the new root
        "folder_bytes": limits.file_mb << 20,
        "files": limits.files,
        "readable": readable,
        "links": links,
        "hidden": hidden,
        "packages": package_folders(),
        "devices": DEVICE_FILES,
        "uid": uid,
        "niceness": UNCOUNTED_NICENESS if os.geteuid() == 0 and not real_root else 0,
        "rlimits": rlimits(limits, others=others),
        "filter": seccomp_filter(platform.machine()).hex(),
    }
    return _command(isolation, spec)


@cache
def _inside_code() -> str:
    code = compile(INSIDE.read_text(encoding="utf-8"), "inside.py", "exec", optimize=0)
    return marshal.dumps(code).hex()


def _command(isolation: IsolationName, spec: dict[str, Any]) -> list[str]:
    # -s -S -P: no user or installed packages, no starting folder on the path; -E would also drop the hash seed.
    interpreter = [os.path.realpath(sys.executable), "-s", "-S", "-P", "-B", "-X", "utf8"]
    inside = [*interpreter, "-c", RUN_MARSHALLED, _inside_code(), marshal.dumps(spec).hex()]
    if isolation != "bubblewrap":
        return inside
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxUnavailable("bwrap is not on the PATH")
    command = [bwrap, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    command += ["--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
    if spec["new_user_namespace"]:
        command += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    else:
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    # bwrap would make missing parent folders accessible only to its own user.
    bound = [*spec["readable"], *spec["packages"], *DEVICE_FILES]
    on_the_way = {str(parent) for path in bound for parent in Path(path).parents}
    for folder in sorted(on_the_way - {"/"}):
        command += ["--perms", "0755", "--dir", folder]
    for path in spec["readable"]:
        command += ["--ro-bind", path, path]
    for path in spec["hidden"]:
        command += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for path, source in spec["packages"].items():
        command += ["--ro-bind", source, path]
    for link, target in spec["links"].items():
        command += ["--symlink", target, link]
    for path in spec["devices"]:
        command += ["--dev-bind", path, path]
    command += ["--perms", "0777", "--size", str(spec["folder_bytes"]), "--tmpfs", FOLDER, "--chdir", FOLDER]
    return [*command, "--remount-ro", "/", "--", *inside]


def rlimits(limits: Limits, *, others: int) -> dict[str, int]:
    """Kernel limits of each process, by name in the module `resource`."""
    return {
        "RLIMIT_AS": limits.memory_mb << 20,
        "RLIMIT_CPU": math.ceil(limits.cpu_s),
        "RLIMIT_NPROC": limits.processes + others,
        "RLIMIT_FSIZE": limits.file_mb << 20,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_STACK": 8 << 20,
    }


@cache
def interpreter_files() -> tuple[list[str], dict[str, str]]:
    """Files that the interpreter reads (itself, its library and the C library's), and the links that lead to them."""
    paths = _installation()
    wanted = [os.path.realpath(sys.executable), paths["stdlib"], paths["platstdlib"]]
    library = f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('INSTSONAME')}"
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        wanted.append(library)
    wanted += ["/etc/ld.so.cache"]
    links = {"/tmp": FOLDER, "/dev/stdin": f"{FOLDER}/stdin"}
    for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"):
        if os.path.islink(path):
            links[path] = os.readlink(path)
        else:
            wanted.append(path)
    wanted = sorted({path for path in wanted if os.path.exists(path)})
    outermost = [path for path in wanted if not any(_below(path, other) for other in wanted)]
    return outermost, links


@cache
def site_packages() -> list[str]:
    """Folders of installed packages, hidden because they may hold any data; programs see only `OFFERED`."""
    paths = _installation()
    return sorted({paths[key] for key in ("purelib", "platlib") if os.path.isdir(paths[key])})


@cache
def package_folders() -> dict[str, str]:
    """Folders of the packages that programs may import, and of their libraries, by their places in the sandbox."""
    found = [find_spec(name) for name in OFFERED]
    origins = [Path(spec.origin).resolve().parent for spec in found if spec is not None and spec.origin is not None]
    folders = [path for one in origins for path in (one, one.with_name(f"{one.name}.libs")) if path.is_dir()]
    return {f"/packages/{path.name}": str(path) for path in folders}


def _installation() -> dict[str, str]:
    """Folders of the base interpreter, even if this process runs in a virtual environment."""
    return sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})


def _below(path: str, root: str) -> bool:
    return path != root and Path(path).is_relative_to(root)
