"""How weights reach generators. A map of the room:

store          the protocol: trainer ranks publish, generators fetch; what makes a publication unusable
hugging_face   their names, whatever the policy
file_weights   those of a model's folder, read one by one
layer_groups   which rank publishes which tensors
manifest       what a publication promises, and whether it keeps it
folder         the store that any machine which mounts a folder reads
kept_folder    the same for weights that are to be measured: what it holds stays until it is deleted by name
shared_memory  the store of one machine: memory that all of its processes see

A store is a bulletin board. No collective joins trainers and generators: a generator that is dead is a reader that
never comes, and one that is started again fetches the newest publication.
"""
