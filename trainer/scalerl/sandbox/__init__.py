"""Runs code written by the policy: no network, no files outside; time, memory, processes, output and files are bounded.

    sandbox        runs one program, watches it, and ends it with everything it started
    limits         limits of a program, and its result
behind it
    isolation      bubblewrap, else namespaces of our own
    inside         code of the interpreter in the sandbox: launcher, supervisor, program
    system_calls   the filters on system calls, also of a process without a sandbox
    processes      total usage of a program's processes

A program can still read the clock, learn about the machine and slow its neighbours: the list of what the sandbox does
not stop is in `docs/design.md`, under "Code that the policy writes".
"""

from scalerl.errors import SandboxFailed, SandboxTimedOut, SandboxUnavailable
from scalerl.sandbox.isolation import OFFERED
from scalerl.sandbox.limits import Limits, ProgramEnd
from scalerl.sandbox.sandbox import Sandbox
