"""Why a run ends, or does not begin, without being at fault itself."""


class Busy(RuntimeError):
    """Another process is training this run."""


class Cancelled(RuntimeError):
    """The run was asked to stop; its checkpoint is written."""


class CannotResume(ValueError):
    """Recipe, checkpoint or log in the run folder are not what the run left."""
