"""Ends processes when the process that started them is gone, even if they hang.

    python -m scalerl.warden PID...     reads `+PID` and `-PID` lines, and at the end of its input kills these groups

A process that hangs in a collective or an engine does not read the line on which it would notice that its coordinator
has died. The warden does nothing but read, has no library to hang in, and its input closes when the coordinator ends,
however it ends. A warden that is killed is started again.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from scalerl.left_names import members_of_group, take_names_away
from scalerl.signals import signals_to_all_blocked

MOST_STARTS = 5
"""Maximum number of starts of a warden while it guards anything, so that one that keeps dying is not restarted forever.
"""


class Warden:
    """The warden of this process: there is one while any group is guarded.

    >>> warden.guard(4711)
    >>> warden.release(4711)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[str] | None = None
        self._starts = 0

    def guard(self, group: int) -> None:
        """Have this process group killed when this process is gone."""
        with self._lock:
            self._groups.add(group)
            if self._process is None:
                self._start()
            else:
                self._say(f"+{group}")

    def release(self, group: int) -> None:
        """Forget a group that has ended: its number may become another's."""
        with self._lock:
            self._groups.discard(group)
            self._say(f"-{group}")
            if not self._groups and self._process is not None:
                process, self._process, self._starts = self._process, None, 0
                assert process.stdin is not None
                with suppress(OSError):
                    process.stdin.close()

    def _start(self) -> None:
        self._starts += 1
        if self._starts > MOST_STARTS:
            self._do_without(f"{MOST_STARTS} wardens have ended")
            return
        root = str(Path(__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        try:
            with signals_to_all_blocked():
                self._process = subprocess.Popen(
                    # On the command line, so that no moment is left in which it lives and knows no group.
                    [sys.executable, "-P", "-m", "scalerl.warden", *map(str, self._groups)],
                    stdin=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": path},
                )
        except OSError as error:  # no more processes, or no memory: the run itself goes on
            self._do_without(f"no warden can be started ({error.strerror or error})")
            return
        threading.Thread(target=self._watch, args=(self._process,), daemon=True).start()

    def _do_without(self, why: str) -> None:
        print(f"{why}; processes of this run that hang may outlive the run if it is killed", flush=True)

    def _say(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # it has been killed; the next one begins with all groups
                self._process.stdin.write(f"{line}\n")
                self._process.stdin.flush()

    def _watch(self, process: subprocess.Popen[str]) -> None:
        process.wait()
        with self._lock:
            if self._process is process:
                print("the warden of this run's processes was killed; another is started", flush=True)
                self._process = None
                self._start()


warden = Warden()


def main() -> None:
    """Read which groups are guarded until the input ends, then kill them."""
    groups = set(map(int, sys.argv[1:]))
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        take_names_away(members_of_group(group))
        for kill in (os.killpg, os.kill):  # a process that has only just been started leads no group yet
            with suppress(ProcessLookupError, PermissionError):
                kill(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
