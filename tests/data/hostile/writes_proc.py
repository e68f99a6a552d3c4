"""Tries to change the machine through /proc and /sys, and to raise its own limits."""

import os
import resource

done = []
for path, text in (
    ("/proc/sys/kernel/core_pattern", "|/tmp/x"),
    ("/proc/sysrq-trigger", "c"),
    ("/proc/self/oom_score_adj", "-1000"),
    ("/sys/fs/cgroup/pids/cgroup.procs", str(os.getpid())),
):
    try:
        with open(path, "w") as file:
            file.write(text)
        done.append(path)
    except OSError:
        pass
for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        done.append(limit)
    except (OSError, ValueError):
        pass
print(done)
