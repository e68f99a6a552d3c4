"""Memory that a run needs, forecast before its start without loading its model. A map of the room:

forecast   peak memory of every process of a run, by part
per_device memory of one device of a trainer or generator, and the settings that would make it fit
shape      model sizes that determine memory, read from its settings or from the headers of its files
"""
