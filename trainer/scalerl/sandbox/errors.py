"""Failures of the sandbox itself, never of the program in it.

SandboxError
├── SandboxUnavailable    this machine cannot isolate as strongly as required
├── SandboxFailed         a program could not be started, watched or ended
└── SandboxTimedOut       a program was not started in time
"""


class SandboxError(RuntimeError):
    """The sandbox failed; nothing is known of the program."""


class SandboxUnavailable(SandboxError):
    """This machine cannot isolate as strongly as required."""


class SandboxFailed(SandboxError):
    """A program could not be started, watched or ended."""


class SandboxTimedOut(SandboxError):
    """A program did not start in time, as on a badly overloaded machine."""
