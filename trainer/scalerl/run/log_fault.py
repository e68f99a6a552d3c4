"""Whether a run's log is still what its trainer wrote. Loads no torch: whoever compares runs asks it."""

from scalerl.run.metrics import LogMark
from scalerl.run.run_folder import RunFolder
from scalerl.run.sealed_json import read_sealed


def log_fault(folder: RunFolder) -> str | None:
    """What is wrong with the log up to the last checkpoint; None if it is as it was, or if nothing says how it was.

    A damaged manifest says nothing: the next attempt to train names it. Versions before form 2 kept no SHA-256.
    """
    try:
        manifest, is_sealed = read_sealed((folder.checkpoint / "manifest.json").read_bytes())
        mark = LogMark(**manifest["log"]) if is_sealed else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark.fault(folder.metrics) if mark else None
