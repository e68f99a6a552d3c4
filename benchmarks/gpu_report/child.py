"""One part in its process: `python -m gpu_report.child '{"part": "step", "rows": "...", "device": "cpu", ...}'`.

The last line of a traceback goes to a file beside the rows; the whole traceback goes to the part's log.
"""

import json
import sys
import traceback
from importlib import import_module
from pathlib import Path

from gpu_report.results import Results
from gpu_report.setting import Setting

ERROR_SUFFIX = ".error"


def main() -> None:
    """Run the part; exit status 1 after an exception."""
    told = json.loads(sys.argv[1])
    rows = Path(told["rows"])
    setting = Setting(
        device=told["device"],
        limit_s=told["limit_s"],
        scratch=Path(told["scratch"]),
        model=Path(told["model"]) if told["model"] else None,
    )
    try:
        if not setting.is_cuda:
            # Products are small here, and threads that wait for each other on a busy machine cost more than they save.
            import_module("torch").set_num_threads(1)
        import_module(f"gpu_report.part_{told['part']}").run(setting, Results(rows, told["part"], setting.device))
    except BaseException as error:
        traceback.print_exc()
        last = traceback.format_exception_only(error)[-1].strip().splitlines()
        rows.with_suffix(ERROR_SUFFIX).write_text(last[0] if last else type(error).__name__)
        sys.exit(1)


if __name__ == "__main__":
    main()
