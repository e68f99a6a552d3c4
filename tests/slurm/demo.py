"""`make slurm-demo`: starts the test cluster, runs a leave-one-out through it, shows the table, and stops the cluster.

What is typed between start and stop is what a user of any cluster types.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from slurm.cluster import SlurmCluster, missing

AT_ONCE = 2


def main() -> int:
    """0 when every run is done; else what `platform status` ended with, or 2 without Slurm's packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("demo-runs"))
    parser.add_argument("--file", default="sweeps/loo.yaml")
    parser.add_argument("--scale", default="smoke")
    options = parser.parse_args()
    if absent := missing():
        print(f"Slurm's test cluster needs {', '.join(absent)}; `make debian` installs them", file=sys.stderr)
        return 2
    # munged's socket must be open to all who can name it, so not below a home folder.
    with tempfile.TemporaryDirectory(prefix="slurm-demo-") as folder:
        Path(folder).chmod(0o755)
        with SlurmCluster(folder=Path(folder) / "cluster") as cluster:
            print(f"a Slurm of one node runs; SLURM_CONF={cluster.environment['SLURM_CONF']}\n", flush=True)
            return demonstrate(cluster.environment, options)


def demonstrate(environment: dict[str, str], options: argparse.Namespace) -> int:
    """Submit, follow, conclude: the exit code of the last."""
    platform = Path(sys.executable).with_name("platform")
    sweep = ["sweep", options.file, "--scale", options.scale, "--executor", "slurm", f"--jobs={AT_ONCE}"]
    follow = ["status", "--watch"]
    code = 0
    for command in (sweep, follow, sweep):
        typed = [*command, "--home", str(options.home)]
        print(f"$ platform {' '.join(typed)}", flush=True)
        code = subprocess.run([str(platform), *typed], env=os.environ | environment, check=False).returncode
        print(flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
