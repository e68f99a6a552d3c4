"""A run in a process of its own, as `platform train` would start it: `rank_run.py FOLDER BUDGET WARM_STARTS`."""

import sys
from pathlib import Path

from scalerl.errors import Cancelled
from scalerl.run.train import train

if __name__ == "__main__":
    try:
        train(Path(sys.argv[1]), budget_gpu_hours=float(sys.argv[2]), warm_starts=Path(sys.argv[3]))
    except Cancelled:
        raise SystemExit(7) from None
