"""Every exception that the trainer raises on purpose; the command line prints each as one line, without a traceback.

ScaleRLError
├── Rejected(ValueError)         exit code 2: bad recipe, data, files or machine; the message names what would fit
│   ├── Busy                        another process is training the run
│   ├── CannotResume                recipe, checkpoint or log has changed since the run stopped
│   │   └── Damaged                     one of the two checkpoints is damaged
│   ├── EnvironmentUnusable          an environment is unknown, lacks its package, or rejects its settings
│   ├── Diverged                    the loss or gradient stayed non-finite
│   ├── GymError                    reasoning-gym is missing, or cannot make the problems
│   ├── OwnFailed                   a user's own function cannot be loaded, or raised an error
│   ├── ProgramFailed               the program of a command study failed, or cannot start
│   ├── SandboxFailed                the sandbox itself failed
│   │   ├── SandboxTimedOut             a program was not started in time
│   │   └── SandboxUnavailable          this machine cannot isolate as strongly as requested
│   ├── TaskError                   a task cannot be built, or has no demonstrations
│   ├── TemplateFault               a template uses a column that the rows lack
│   ├── UnreadableRows              a task file has unusable rows
│   ├── UnusableError               a problem that no verifier can judge
│   └── VerifierFailed              a verifier has stopped judging answers
├── Interrupted                 exit code 3: a process or node is gone; the same command resumes the run
│   ├── Cancelled                   the run was asked to stop
│   └── RankDied                    a rank of the learner died
└── Internal                    exit code 1: signals between parts of the trainer; a bug if a user sees one
    ├── AllRetired                  the curriculum has no prompts left; the run ends as `stopped`
    ├── BadRequest                  an agent program's request is refused; the program is told why
    ├── EnvironmentGone              the process of environments ended or hangs; it is replaced
    ├── MeetingIsOver               the attempt that an agent was to join has ended
    └── UnusablePublication         weights are torn, damaged, missing, or from another model or version

Exceptions raised inside the sandbox are not listed: processes there import nothing from the trainer.
"""

from typing import ClassVar


class ScaleRLError(Exception):
    """The reason why a run ends or does not start."""

    exit_code: ClassVar[int] = 1
    """Exit code of the command that ends with this error."""
    remedy: ClassVar[str] = ""
    """The next step for the user; empty if every message names it."""

    @property
    def advice(self) -> str:
        """The message and the remedy, in one line."""
        return f"{self}; {self.remedy}" if self.remedy else str(self)


class Rejected(ScaleRLError, ValueError):
    """Bad recipe, data, files or machine; the message names what would fit."""

    exit_code = 2


class Diverged(Rejected):
    """The loss or its gradient was not finite for several steps in a row, or the policy's probabilities are not
    valid."""


class Interrupted(ScaleRLError):
    """A process or node that the run needs is gone or does not answer."""

    exit_code = 3
    remedy = "the same command resumes the run from its last checkpoint"


class Internal(ScaleRLError):
    """A signal between parts of the trainer; a bug if a user sees one."""

    remedy = "this is a bug of the trainer: please report it with the log of the run"


class Busy(Rejected):
    """Another process is training this run."""


class CannotResume(Rejected):
    """The recipe, checkpoint or log in the run folder has changed since the run stopped."""


class Cancelled(Interrupted):
    """The run was asked to stop; its checkpoint has been written."""


class ProgramFailed(Rejected):
    """The program of a command study failed, logged nothing in time, or is not the code that was planned."""


class SandboxFailed(Rejected):
    """The sandbox itself failed, so the program was not judged."""


class SandboxUnavailable(SandboxFailed):
    """This machine cannot isolate programs as strongly as requested."""


class SandboxTimedOut(SandboxFailed):
    """A program could not be started in time, for example on an overloaded machine."""
