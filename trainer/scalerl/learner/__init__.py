"""Groups in, new weights out. A map of the room:

torch_learner  AdamW on the policy loss
batch          groups of rollouts as tensors
critic         PPO's value network in place of the mean of a group
learning_rate  its schedules
loss_scale     for FP16
"""
