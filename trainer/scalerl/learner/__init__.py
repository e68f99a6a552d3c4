"""Groups in, new weights out. A map of the room:

learner        the protocol: groups to an update, weights, checkpoint
torch_learner  the built-in learner: AdamW on the policy loss
batch_loss     the loss of a batch, apart from whatever optimises it
batch          groups of rollouts as tensors
critic         PPO's value network in place of the mean of a group
learning_rate  its schedules
loss_scale     for FP16
"""
