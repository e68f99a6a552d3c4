"""How weights reach generators. A map of the room:

shared_memory  through memory that all processes of a machine see
"""
