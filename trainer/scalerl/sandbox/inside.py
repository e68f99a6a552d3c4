"""Code of the interpreter in the sandbox: it isolates itself, starts the program, and ends everything with it.

    launcher      only without bubblewrap: makes the namespaces and the file tree
    supervisor    process 1 of the sandbox; ends with the program or on the trainer's request, and all others with it
    program       limits, user, system-call filter; then the policy's text as `__main__`

The interpreter gets this module as compiled code, so it uses only the standard library, and only fast parts: importing
json and signal would take longer than all the rest. On the status pipe the supervisor reports `started`, then
`ended WAIT_STATUS CPU_S` or `limit NAME`. The program never holds that pipe.
"""

import _signal  # pyright: ignore[reportMissingImports]  # typeshed describes only signal, which wraps it
import ctypes
import marshal
import os
import resource
import select
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
FOLDER = "/sandbox"
POLL_MS = 50
PIPES = ("control_fd", "status_fd", "program_fd")

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
KEPT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048}
"""statvfs flags to mount flags that a user namespace must keep on mounts it did not make."""
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def check(result, what):
    """Raise the C library's error, if any, naming the failed operation."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option, value):
    check(LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl {option}")


# Namespaces and file tree, unless bubblewrap has made them.


def enter_namespaces(spec):
    """Enter new namespaces of every kind; the next forked process is process 1 in them."""
    flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
    uid, gid = os.getuid(), os.getgid()
    if spec["new_user_namespace"]:
        flags |= CLONE_NEWUSER
    check(LIBC.unshare(flags), "unshare")
    if spec["new_user_namespace"]:
        for name, text in (("setgroups", "deny"), ("uid_map", f"65534 {uid} 1"), ("gid_map", f"65534 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def mount(source, target, kind, flags, options=None):
    encoded = [part.encode() if part is not None else None for part in (source, target, kind)]
    check(LIBC.mount(*encoded, ctypes.c_ulong(flags), options and options.encode()), f"mount {source} on {target}")


def build_tree(spec):
    """Build a root with what `spec` makes readable, a few devices and a small writable folder; hide the old root."""
    root = spec["root"]
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    for path in (*spec["readable"], *spec["devices"]):
        bind(path, root + path, read_only=path not in spec["devices"])
    for path in spec["hidden"]:
        mount("tmpfs", root + path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k")
    for path, source in spec["packages"].items():
        bind(source, root + path, read_only=True)
    for link, target in spec["links"].items():
        os.makedirs(os.path.dirname(root + link), exist_ok=True)
        os.symlink(target, root + link)
    os.mkdir(root + FOLDER)
    mount("tmpfs", root + FOLDER, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=777,size={spec['folder_bytes']}")
    os.mkdir(root + "/old")
    check(LIBC.syscall(PIVOT_ROOT[os.uname().machine], root.encode(), (root + "/old").encode()), "pivot_root")
    os.chdir("/")
    check(LIBC.umount2(b"/old", MNT_DETACH), "umount")
    os.rmdir("/old")
    mount(None, "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def bind(source, target, *, read_only):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w"):
            pass
    mount(source, target, None, MS_BIND)
    if read_only:
        kept = sum(flag for bit, flag in KEPT_FLAGS.items() if os.statvfs(target).f_flag & bit)
        mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def drop_capabilities():
    """Drop all capabilities for good."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capset")


# The program.


def shut_in(spec):
    """Apply the program's limits, user and filter, irreversibly."""
    for name, wanted in spec["rlimits"].items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))
    os.nice(spec["niceness"])
    if spec["uid"] is not None:
        os.setgroups([])
        os.setresgid(spec["uid"], spec["uid"], spec["uid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    drop_capabilities()
    prctl(PR_SET_DUMPABLE, 1)  # so that a trainer without root can read the amount of shared memory
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    install_filter(bytes.fromhex(spec["filter"]))


def install_filter(code):
    """Let the kernel apply a BPF program to every system call of this process from here on."""
    instructions = ctypes.create_string_buffer(code, len(code))

    class FilterProgram(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    program = FilterProgram(len(code) // 8, ctypes.cast(instructions, ctypes.c_void_p))
    check(LIBC.prctl(PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(program), 0, 0), "seccomp")


def become_program(spec):
    """Isolate this process, close the supervisor's pipes, and return the program's text."""
    os.setsid()
    os.chdir(FOLDER)
    with open(spec["program_fd"], "rb") as file:
        text = file.read()
    shut_in(spec)
    os.write(spec["status_fd"], b"started\n")
    os.closerange(3, 1 + max(spec[name] for name in PIPES))  # same numbers as in the trainer, which may have many open
    return text


# The supervisor.


def supervise(spec, child):
    """Wait for the program, the trainer or too many files, whichever comes first; then end every process."""
    control, status = spec["control_fd"], spec["status_fd"]
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(ended, select.POLLIN)
    report = None
    while report is None:
        ready = {fd for fd, _ in poll.poll(POLL_MS)}
        if ended in ready:
            _, wait_status, usage = os.wait4(child, 0)
            report = f"ended {wait_status} {usage.ru_utime + usage.ru_stime:.6f}\n"
        elif control in ready:
            report = ""
        elif num_files() > spec["files"]:
            report = "limit files\n"
    os.write(status, report.encode())
    os._exit(0)  # the end of process 1 ends every process of its namespace


def num_files():
    """Number of files and folders in the program's folder, which has a file system of its own."""
    state = os.statvfs(FOLDER)
    return state.f_files - state.f_ffree - 1


def main():
    """Return the program's text in the program's process; no other process returns from here."""
    spec = marshal.loads(bytes.fromhex(sys.argv.pop()))
    if spec["makes_namespaces"]:
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
        enter_namespaces(spec)
        child = os.fork()
        if child:
            for name in PIPES:
                os.close(spec[name])
            os.waitpid(child, 0)
            os._exit(0)
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
        build_tree(spec)
    prctl(PR_SET_DUMPABLE, 0)  # no process in the sandbox may inspect this one
    # From inside, process 1 gets only signals that it handles, and Python handles this one by default.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    child = os.fork()
    if not child:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        return become_program(spec)
    os.closerange(0, 3)
    os.close(spec["program_fd"])
    supervise(spec, child)
    raise AssertionError("the supervisor exits")


def run_as_main(text):
    """Run `text` as a separate module called `__main__`."""
    code = compile(text, "program.py", "exec")
    module = type(sys)("__main__")
    sys.argv[:] = ["program.py"]
    sys.path.append("/packages")
    sys.modules["__main__"] = module
    vars(sys.modules["builtins"]).update(exit=sys.exit, quit=sys.exit)  # -S omits them with the rest of `site`
    exec(code, vars(module))


if __name__ == "__main__":
    supervisors_module = sys.modules["__main__"]  # without a reference the module would lose its globals
    run_as_main(main())
