#!/usr/bin/env bash
# TensorBoard shows values that a restarted writer has purged.
#
# tensorboard 2.21.0, tensorboardX 2.6.5. SummaryWriter(purge_step=T), of torch.utils.tensorboard and of tensorboardX alike,
# is documented as: "any events whose global_step larger or equal to T will be purged and hidden from TensorBoard".
# Expected: after a first run without purge_step, as every first run is, and a second with purge_step=11, both of
# TensorBoard's readers hide steps 15 and 20 of the first.
# Seen: `event_accumulator`, the reader that scripts use, hides them. `plugin_event_accumulator`, the reader behind
# TensorBoard's page (--load_fast=false), keeps them, and with them scores of steps that the second run never logged: it
# takes the first mark of a start in a folder for that of the first run. If the first run has a mark too, both hide them.
# Exits with 1 if this changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "tensorboard==2.21.0" "tensorboardX==2.6.5" "setuptools<81"
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import logging
import sys
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import tensorboard
import tensorboardX
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tb_logging

tb_logging.get_logger().setLevel(logging.ERROR)


def steps_read(folder, first_purge_step):
    """The steps of a run that was killed after step 20 and resumed from step 10, by both readers."""
    for steps, purge_step in ((range(0, 25, 5), first_purge_step), (range(12, 40, 5), 11)):
        writer = tensorboardX.SummaryWriter(str(folder), purge_step=purge_step)
        for step in steps:
            writer.add_scalar("accuracy", 0.5, step)
        writer.close()
        time.sleep(1.1)  # the name of an event file has whole seconds
    script, page = event_accumulator.EventAccumulator(str(folder)), plugin_event_accumulator.EventAccumulator(str(folder))
    script.Reload(), page.Reload()
    of_page = page.Tensors("accuracy") if "accuracy" in page.Tags()["tensors"] else []
    return [event.step for event in script.Scalars("accuracy")], [event.step for event in of_page]


RIGHT, LOST = [0, 5, 10, 12, 17, 22, 27, 32, 37], [15, 20]
print(f"tensorboard {tensorboard.__version__}, tensorboardX {tensorboardX.__version__}")
found = {}
for name, purge_step in (("first run without purge_step", None), ("first run with purge_step=0", 0)):
    found[name] = steps_read(Path(sys.argv[1]) / name, purge_step)
    print(f"{name}: reader of scripts {found[name][0]}, reader of the page {found[name][1]}; expected {RIGHT} of both")
without, with_mark = found.values()
is_as_described = without[0] == RIGHT and sorted(without[1]) == sorted(RIGHT + LOST) and with_mark == (RIGHT, RIGHT)
print("as described" if is_as_described else "this has changed")
sys.exit(not is_as_described)
PYTHON
