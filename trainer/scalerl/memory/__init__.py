"""How much memory a run needs, known before it starts and without loading its model. A map of the room:

forecast   peak memory of every process of a run, by part
per_device memory of one device of a cluster: of a trainer's rank, of a generator's; which settings would make it fit
shape      what of a model decides its memory, read from its settings or from the headers of its files
"""
