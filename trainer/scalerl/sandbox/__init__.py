"""Runs code the policy wrote: no network, no files outside, bounded in time, memory, processes, output and files.

    sandbox        start one program, watch it, end it and all it started
    limits         what a program may use, and how it ended
behind it
    isolation      bubblewrap, else namespaces of our own, else resource limits only
    inside         what the interpreter in the sandbox runs: launcher, supervisor, program
    system_calls   the filter on system calls
    processes      what the processes of a program use together

A program can still read the clock, learn about the machine and slow its neighbours: the list of what the sandbox does
not stop is in `docs/design.md`, under "Code that the policy writes".
"""

from scalerl.errors import SandboxError, SandboxTimedOut, SandboxUnavailable
from scalerl.sandbox.limits import LimitName, Limits, ProgramEnd
from scalerl.sandbox.sandbox import Sandbox

__all__ = [
    "LimitName",
    "Limits",
    "ProgramEnd",
    "Sandbox",
    "SandboxError",
    "SandboxTimedOut",
    "SandboxUnavailable",
]
