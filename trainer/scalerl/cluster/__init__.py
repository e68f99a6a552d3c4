"""Generators and a trainer together. A map of the room:

cluster          what is between them, whatever the clock
virtual_cluster  played by one process, time modelled
cost             what work costs on the modelled device
"""
