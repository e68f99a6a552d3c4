"""Groups in, new weights out. A map of the room:

learner        the protocol: groups to an update, weights, checkpoint
torch_learner  the built-in learner: the algorithm, on any engine
batch_loss     the loss of a batch, apart from its optimiser
batch          groups of rollouts as tensors
critic         PPO's value network, an alternative to the group mean
learning_rate  learning-rate schedules
loss_scale     dynamic loss scaling for FP16
update_size    the size of AdamW's last update beside the weights

engine         the protocol: a network, its optimiser, and the processes they are spread over
adamw          PyTorch's AdamW without its import of the compiler
torch_engine   everything in one process
deepspeed_engine   ZeRO-2 and ZeRO-3 over several processes
fsdp_engine    FSDP2 over several processes
make           the engines that a recipe asks for
saved_pieces   tensors in pieces: each rank's part, and the checkpoint files that hold the parts
ranks          the processes that train together, and the passes of each
"""
