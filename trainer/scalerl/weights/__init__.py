"""How weights reach generators. A map of the room:

hugging_face   their names, whatever the policy
shared_memory  through memory that all processes of a machine see
"""
