"""Weights on their way to generators. A map of the room:

store          the protocol: trainer ranks publish, each its tensors, generators fetch, and unusable publications raise
hugging_face   weights under Hugging Face's names, for any policy, and those of a folder, read one by one
manifest       expected form and checksums of a publication
folder         a store in a folder, for every machine that mounts it; and one of weights to be evaluated
shared_memory  a store in memory shared by all processes of one machine, or of one node
broadcast      a store in the memory of every node of a run, which pass publications on to each other
keeper         gives and takes shares of the weights in the memory of a node
node_memory    the memory of a node, and the bytes of a share

A store is a bulletin board. No collective joins trainers and generators: a dead generator is a reader that never comes,
and a restarted one fetches the newest publication.
"""
