"""Everything that the trainer raises on purpose. The command line prints one line for it, without a traceback.

ScaleRLError
├── Rejected(ValueError)         exit code 2: recipe, data, files or machine do not fit; the message names what would
│   ├── Busy                        another process is training the run
│   ├── CannotResume                recipe, checkpoint or log are not what the run left
│   │   └── Damaged                     one checkpoint of two is not whole
│   ├── Diverged                    loss or gradient stayed not finite
│   ├── SandboxFailed                the sandbox did not do its work
│   │   ├── SandboxTimedOut             a program was not started in time
│   │   └── SandboxUnavailable          this machine cannot isolate as strongly as was asked for
│   ├── TaskError                   a task cannot be built, or has no demonstrations
│   ├── TemplateFault               a template asks for what the rows do not have
│   ├── UnreadableRows              a task file has rows that cannot be used
│   ├── UnusableError               a problem that no verifier can judge
│   └── VerifierFailed              a verifier no longer judges any answer
├── Interrupted                 exit code 3: a process or a node is gone; the same command resumes the run
│   ├── Cancelled                   the run was asked to stop
│   └── RankDied                    a rank of the learner ended on its own
└── Internal                    exit code 1: parts of the trainer tell each other; a bug of ours if a user sees it
    ├── AllRetired                  the curriculum has no prompt left, and the run ends as `stopped`
    ├── MeetingIsOver               the attempt that an agent came for has ended
    └── UnusablePublication         weights that are torn, damaged, gone, or of another model or version

What the processes inside the sandbox raise is not here: they import nothing of the trainer.
"""

from typing import ClassVar


class ScaleRLError(Exception):
    """Why a run ends, or does not begin."""

    exit_code: ClassVar[int] = 1
    """Of the command that ends with it."""
    remedy: ClassVar[str] = ""
    """What to do next; empty if every message names it."""

    @property
    def advice(self) -> str:
        """The message and what to do next, in one line."""
        return f"{self}; {self.remedy}" if self.remedy else str(self)


class Rejected(ScaleRLError, ValueError):
    """Recipe, data, files or machine do not fit; the message names what would."""

    exit_code = 2


class Interrupted(ScaleRLError):
    """A process or a node that the run needs is gone, or does not answer."""

    exit_code = 3
    remedy = "the same command resumes the run from its last checkpoint"


class Internal(ScaleRLError):
    """What one part of the trainer tells another; a bug of ours if a user sees it."""

    remedy = "this is a bug of the trainer: please report it with the log of the run"


class Busy(Rejected):
    """Another process is training this run."""


class CannotResume(Rejected):
    """Recipe, checkpoint or log in the run folder are not what the run left."""


class Cancelled(Interrupted):
    """The run was asked to stop; its checkpoint is written."""


class SandboxFailed(Rejected):
    """The sandbox did not do its work; nothing is known of the program."""


class SandboxUnavailable(SandboxFailed):
    """This machine cannot isolate as strongly as was asked for."""


class SandboxTimedOut(SandboxFailed):
    """A program was not started in time, as on a machine with far too much to do."""
