"""Findings in words and in cells of tables. A map of the room:

headline    the verdict in one line: the leader, the undecided questions, the cost of deciding; what pass rates measure
comparison  a comparison: its cells, its sentences, the meaning of each verdict
design      the resolution of a study's designs
forecast    the lines of a forecast
claim_card  a card
"""
