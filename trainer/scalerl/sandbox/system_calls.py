"""A seccomp filter that rejects system calls which no solution needs and an escape would start with.

The numbers are the kernel's (asm/unistd_64.h for x86-64, asm-generic/unistd.h for AArch64). The filter is a classic
BPF program for seccomp(2), eight bytes per instruction. pyseccomp knows the numbers too, but needs a shared library
that only an administrator can install; these bytes work wherever the kernel does.
"""

import struct
from collections.abc import Mapping

DENIED = {
    # Network, even without a network namespace; io_uring can open sockets by itself.
    "socket": (41, 198),
    "io_uring_setup": (425, 425),
    # Memory that belongs to no process, which RLIMIT_AS and resident memory miss.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # Priorities of other processes, such as of all processes of the user; one's own need no change either.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
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
    # Rarely used entry points into the kernel.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}

DENIED_TO_READERS = {
    # Signals, which would reach every process of the user, including the trainer.
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    # New programs and processes.
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    # Files: making, removing, renaming and changing them. Opening one for writing is rejected by its flags.
    "creat": (85, None),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND."""
CLONE_NEWUSER = 0x10000000
# Calls denied by an argument: their numbers, its position, and its bits of which none may be set.
OF_ANOTHER = {
    "prlimit64": ((302, 261), 0, 0xFFFFFFFF),
    "sched_setparam": ((142, 118), 0, 0xFFFFFFFF),
    "sched_setscheduler": ((144, 119), 0, 0xFFFFFFFF),
    "sched_setaffinity": ((203, 122), 0, 0xFFFFFFFF),
    "sched_setattr": ((314, 274), 0, 0xFFFFFFFF),
}
NEW_USER_NAMESPACE = {"clone": ((56, 220), 0, CLONE_NEWUSER)}
OPENING = {"open": ((2, None), 1, WRITING), "openat": ((257, 56), 2, WRITING)}

MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH of each machine, and its place in the tables above."""
CLONE3 = 435
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16
ALLOW, KILL, REFUSE, NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
"""Return values: allow; kill the process; EPERM; ENOSYS."""


def seccomp_filter(machine: str) -> bytes:
    """Filter for `machine`, a name as in `platform.machine()`.

    Calls in another numbering (i386, x32) are killed or rejected, since the table does not apply to them. clone3
    returns ENOSYS, because the filter cannot see its flags in memory; the C library then uses clone. A process may
    change only its own limits, processors and scheduling class (those of process 0), or it could have the supervisor
    killed, or make it too slow to end a program in time.
    """
    return _filter(machine, DENIED, NEW_USER_NAMESPACE)


def reading_filter(machine: str) -> bytes:
    """Filter for a process that only reads files and computes (`scalerl.verifiers.gym_score`)."""
    return _filter(machine, DENIED | DENIED_TO_READERS, OPENING)


def _filter(
    machine: str,
    denied: Mapping[str, tuple[int, int | None]],
    denied_by_argument: Mapping[str, tuple[tuple[int, int | None], int, int]],
) -> bytes:
    if machine not in MACHINES:
        raise ValueError(f"sandbox: no table of system calls for {machine!r}; supported machines: {sorted(MACHINES)}")
    architecture, column = MACHINES[machine]
    code = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
        (JUMP_AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, REFUSE),
        (JUMP_EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, NOT_THERE),
    ]
    for numbers in denied.values():
        if (number := numbers[column]) is not None:
            code += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    for numbers, position, bits in [*OF_ANOTHER.values(), *denied_by_argument.values()]:
        if (number := numbers[column]) is not None:
            code += [
                (JUMP_EQUAL, 0, 4, number),
                (LOAD, 0, 0, FIRST_ARGUMENT_AT + 8 * position),
                (JUMP_ANY_BIT, 0, 1, bits),
                (RETURN, 0, 0, REFUSE),
                (RETURN, 0, 0, ALLOW),
            ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in [*code, (RETURN, 0, 0, ALLOW)])
