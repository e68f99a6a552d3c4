"""What can go wrong with the sandbox itself, never with the program in it.

SandboxError
├── SandboxUnavailable    this machine cannot isolate as strongly as was asked for
├── SandboxFailed         a program could not be started, watched or ended
└── SandboxTimedOut       a program was not started in time
"""


class SandboxError(RuntimeError):
    """The sandbox did not do its work; nothing is known of the program."""


class SandboxUnavailable(SandboxError):
    """This machine cannot isolate as strongly as was asked for."""


class SandboxFailed(SandboxError):
    """A program could not be started, watched or ended."""


class SandboxTimedOut(SandboxError):
    """A program was not started in time, as on a machine with far too much to do."""
