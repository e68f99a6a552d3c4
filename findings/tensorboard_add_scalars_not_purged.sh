#!/usr/bin/env bash
# SummaryWriter(purge_step=T) purges what add_scalar wrote, and nothing that add_scalars wrote.
#
# tensorboard 2.21.0, tensorboardX 2.6.5. `purge_step` is documented for the writer: "any events whose global_step larger
# or equal to T will be purged and hidden from TensorBoard". add_scalars writes each curve into a folder of its own by a
# writer that is made without purge_step.
# Expected: after a run that was killed at step 20 and resumed at 11 with purge_step=11, steps 15 and 20 of the first are
# hidden in both curves.
# Seen: `event_accumulator` hides them in the curve of add_scalar and shows them in that of add_scalars, which has the
# lost attempt's scores at steps that the resumed run never logged. So one page shows training rewards without the lost
# attempt and validation scores with it.
# Exits with 1 if this changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "tensorboard==2.21.0" "tensorboardX==2.6.5" "setuptools<81"
"$folder/venv/bin/python" - "$folder/run" <<'PYTHON'
import logging
import sys
import time
import warnings

warnings.simplefilter("ignore")
import tensorboard
import tensorboardX
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tb_logging

tb_logging.get_logger().setLevel(logging.ERROR)

run = sys.argv[1]
for steps, purge_step in ((range(0, 25, 5), 0), (range(12, 40, 5), 11)):
    writer = tensorboardX.SummaryWriter(run, purge_step=purge_step)
    for step in steps:
        writer.add_scalar("reward", 0.5, step)
        writer.add_scalars("accuracy", {"train": 0.6, "val": 0.5}, step)
    writer.close()
    time.sleep(1.1)  # the name of an event file has whole seconds


def steps_of(folder, tag):
    """The steps of a curve that TensorBoard's reader gives."""
    reader = EventAccumulator(folder)
    reader.Reload()
    return [event.step for event in reader.Scalars(tag)]


RIGHT = [0, 5, 10, 12, 17, 22, 27, 32, 37]
alone, together = steps_of(run, "reward"), steps_of(f"{run}/accuracy/val", "accuracy")
print(f"tensorboard {tensorboard.__version__}, tensorboardX {tensorboardX.__version__}")
print(f"add_scalar {alone}, add_scalars {together}; expected {RIGHT} of both")
is_as_described = alone == RIGHT and sorted(together) == [0, 5, 10, 12, 15, 17, 20, 22, 27, 32, 37]
print("as described" if is_as_described else "this has changed")
sys.exit(not is_as_described)
PYTHON
