"""How weights reach generators. A map of the room:

channel        the protocol: publish, receive
hugging_face   their names, whatever the policy
shared_memory  the channel of one machine: memory that all of its processes see
"""
