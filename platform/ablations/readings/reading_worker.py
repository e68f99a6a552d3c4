"""A worker process that reads and fits runs for another: `python -m ablations.readings.reading_worker`.

The worker takes a line of JSON per run from standard input, and writes the length and the bytes of each reading to
standard output. The worker ends with its input, and so with its parent process.
"""

import os
import signal
import sys

from ablations.readings.readings_together import LENGTH_BYTES
from ablations.readings.run_reading import reading_bytes
from ablations.readings.wanted import wanted_of_line


def main() -> None:
    """Answer requests until the input ends; Ctrl-C is left to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep what libraries print out of the answers
    for line in sys.stdin.buffer:
        content = reading_bytes(wanted_of_line(line).read())
        answers.write(len(content).to_bytes(LENGTH_BYTES) + content)
        answers.flush()


if __name__ == "__main__":
    main()
