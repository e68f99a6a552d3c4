"""When generators generate and trainers train. A schedule is a function from the cluster to its next optimiser step,
and knows neither clock.

pipeline.py         PipelineRL-k: both at once, new weights mid-sequence
ppo_off_policy.py   PPO-off-policy-k: in turns, k steps on what one frozen policy generated
resampling.py       what both throw away so that a batch is full of groups with variance
"""

from scalerl.schedules.pipeline import pipeline
from scalerl.schedules.ppo_off_policy import ppo_off_policy

SCHEDULES = {"pipeline": pipeline, "ppo_off_policy": ppo_off_policy}
