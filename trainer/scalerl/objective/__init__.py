"""The formulas of an optimiser step: tensors in, tensors out. A map of the room:

shapes       records of tensors with checked shapes
rewards      rewards from outcomes
advantages   advantages from rewards; running_statistics: statistics over all batches so far
turn_credit  rewards of turns, each compared with the same turn of the group
gae          advantages from values
losses       the policy losses
correction   factors that correct the gap between trainer and generator
trained_groups  which groups the loss has
mismatch     how far trainer and generator are apart
aggregation  weights that reduce per-token losses to one number
kl           the KL estimators
"""
