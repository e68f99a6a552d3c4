"""The comparison as the paper makes it, for reproduction. A map of the room:

grid        the grid of the paper's fit
comparison  its margin of 0.02, its B at a common A
words       the same in words
published   numbers that the paper publishes, with their sources
judgement   what an interval says of a claim
card        the claims of a study, judged; card_words: the same in words
written_cards  cards that studies have written, read again
"""
