"""The formulas of an optimiser step, tensors in and tensors out. A map of the room:

shapes       records of tensors with checked shapes
rewards      outcomes to rewards
advantages   rewards to advantages; running_statistics: statistics over all batches so far
gae          advantages from values
losses       the policy losses
aggregation  weights that reduce token losses to one number
kl           the KL estimators
entropy      the entropy of a policy
"""
