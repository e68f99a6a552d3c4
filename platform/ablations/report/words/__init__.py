"""What is found, in words and cells of tables. A map of the room:

comparison  a comparison: its cells, its sentences, what each verdict means
design      what a study could see
forecast    the lines of a forecast
paper       the paper's comparison
card        a card
"""
