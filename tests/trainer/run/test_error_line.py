"""The line that names the error is found in what real programs print at their end."""

import subprocess
import sys

import pytest

from scalerl.run.error_line import error_of_program

TRACE = """Traceback (most recent call last):
  File "train.py", line 11, in <module>
    from datasets import Dataset
ModuleNotFoundError: No module named 'datasets'
"""
NOTED = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise RuntimeError("CUDA error: out of memory
RuntimeError: CUDA error: out of memory
CUDA kernel errors might be reported later.
For debugging pass CUDA_LAUNCH_BLOCKING=1
wandb: You can sync this run by hand
"""
RANKS = """[rank1]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank1]:   File "train.py", line 4, in <module>
[rank0]:   File "train.py", line 4, in <module>
[rank1]:     main()
[rank0]:     main()
[rank1]: ValueError: the batch of 6 does not divide by 4 ranks
[rank0]: ValueError: the batch of 6 does not divide by 4 ranks
Traceback (most recent call last):
  File "bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
train.py FAILED
"""


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (TRACE, ": ModuleNotFoundError: No module named 'datasets'"),
        (NOTED, ": RuntimeError: CUDA error: out of memory"),
        (RANKS, ": [rank0]: ValueError: the batch of 6 does not divide by 4 ranks"),
        (TRACE + "Exception ignored in: <function a>\n" + NOTED, ": ModuleNotFoundError: No module named 'datasets'"),
        ("usage\ntrain.py: error: unknown --lr\n\n", ": train.py: error: unknown --lr. Lines before it: usage"),
        ("  indented \n", ": indented"),
        ("Traceback (most recent call last):\n", ": Traceback (most recent call last):"),  # killed while it printed
        ("", ""),
    ],
)
def test_the_line_that_ends_the_traceback_is_the_error(printed, said):
    assert error_of_program(printed) == said


def test_the_traceback_of_python_itself_is_read():
    script = "try:\n    {}['lr']\nexcept KeyError as error:\n    raise ValueError('no rate') from error"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr
    assert error_of_program(printed) == ": ValueError: no rate"
