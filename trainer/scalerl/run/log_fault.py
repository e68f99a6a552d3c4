"""Check that a run's log is as its trainer wrote it. Does not load torch, because every comparison of runs uses it."""

from scalerl.run.metrics import LogMark
from scalerl.run.run_folder import RunFolder
from scalerl.run.sealed_json import read_sealed


def log_fault(folder: RunFolder) -> str | None:
    """The fault in the log up to the last checkpoint; None if it is unchanged, or if no record of it exists.

    A damaged manifest counts as no record: the next training attempt reports it. Formats before 2 kept no SHA-256.
    """
    try:
        manifest, is_sealed = read_sealed((folder.checkpoint / "manifest.json").read_bytes())
        mark = LogMark(**manifest["log"]) if is_sealed else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark.fault(folder.metrics) if mark else None
