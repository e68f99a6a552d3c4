"""The command of the report: `PYTHONPATH=trainer:benchmarks python -m gpu_report --device cuda --out gpu-report`.

Exit status 1 if a row fails or a part ends with an error. Parts run one after another, each in a process of its own, so
that none takes another's memory, and an error of the device ends only the part that had it.
"""

import argparse
import sys
from pathlib import Path

from gpu_report.alone import PartResult, run_alone
from gpu_report.known_rows import PARTS
from gpu_report.machine import facts
from gpu_report.results import FAIL
from gpu_report.written import failed, outcomes, text_of, write_report

LIMIT_S = {"cuda": 600.0, "cpu": 120.0}
"""Seconds that a part may take."""


def main() -> None:
    """Run the parts and write the report after each, so that a broken run leaves what it found."""
    parser = argparse.ArgumentParser(prog="gpu_report", description="Measure what only a GPU can show.")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--out", type=Path, default=Path("gpu-report"), help="folder of the report")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run; default all")
    parser.add_argument("--model", type=Path, help="folder of a pretrained model, for the part `real`")
    parser.add_argument("--limit", type=float, help="seconds that a part may take; default 600, on a CPU 120")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    machine, parts = facts(), []
    for name in (part for part in PARTS if part in options.part):
        print(f"{name} ...", flush=True)
        log = options.out / f"{name}.log"
        limit_s = options.limit or LIMIT_S[options.device]
        parts.append(run_alone(name, device=options.device, limit_s=limit_s, model=options.model, log=log))
        print_part(parts[-1])
        write_report(options.out, options.device, machine, parts)
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes(parts).items()))
    print(f"{counts}; {sum(part.wall_s for part in parts):.0f} s. The report is {options.out / 'report.md'}.")
    sys.exit(1 if failed(parts) else 0)


def print_part(part: PartResult) -> None:
    """One line a row."""
    for row in part.rows:
        value = "" if row.value is None else text_of(row.value)
        print(f"  {row.outcome:8}{row.id:36}{value:>12}  {row.bound or row.reason}")
        if row.outcome == FAIL and row.reason and row.bound:
            print(f"          {row.reason}")
    print(f"  {part.wall_s:.1f} s{f'; ended with an error: {part.error}' if part.error else ''}", flush=True)


if __name__ == "__main__":
    main()
