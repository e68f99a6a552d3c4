"""Confines this process for good: afterwards it can read files and compute, and nothing else.

Weaker than the sandbox, and free of its start: for libraries that read an answer, not for programs that a policy wrote.
"""

import platform

from scalerl.sandbox.inside import PR_SET_NO_NEW_PRIVS, install_filter, prctl
from scalerl.sandbox.system_calls import reading_filter


def confine() -> None:
    """Reject writing and removing files, sockets, new processes and signals from here on.

    Raises OSError if the kernel has no seccomp, and ValueError on a machine whose system calls are not known.
    """
    code = reading_filter(platform.machine())
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    install_filter(code)
