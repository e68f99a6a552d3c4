"""The comparison as the paper makes it, for reproduction. A map of the room:

grid        the grid of the paper's fit
comparison  its margin of 0.02, its B at a common A
words       the same in words
"""
