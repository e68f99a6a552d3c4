"""Groups in, new weights out. A map of the room:

learner        the protocol: groups to an update, weights, checkpoint
torch_learner  the built-in learner: the algorithm, on any engine
batch_loss     the loss of a batch, apart from whatever optimises it
batch          groups of rollouts as tensors
critic         PPO's value network in place of the mean of a group
learning_rate  its schedules
loss_scale     for FP16

engine         the protocol: a network, its optimiser, and the processes that they lie on
torch_engine   all of it in one process
deepspeed_engine   ZeRO-2 and ZeRO-3 over several
fsdp_engine    FSDP2 over several
make           the engines that a recipe asks for
pieces         tensors in pieces: what each rank keeps, and the files of a checkpoint that have it
ranks          the processes that train together
shares         which of them computes which passes of a batch
"""
