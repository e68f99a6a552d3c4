"""Findings as documents: words, tables and figures in an order, for every writer. A map of the room:

blocks             what documents consist of; number_cells: cells of numbers with intervals
comparison         a sweep compared: brief for a terminal, whole for a report
comparison_tables  its tables; variant_row: one variant in cells; marks: the * and others behind its numbers
comparison_words   its sentences; headline: the verdict; methods: how it was trained, fitted and compared
grid               the cells and main effects of a grid, and pairs of changes
ladder             a study at several scales
data_card          the card of published curves
claim_card         claims of a paper beside what was found
regime             how far a sweep is from the paper's regime
paper_comparison   the comparison by the paper's method
forecast           every variant at more compute, and the backtest of such forecasts
diagnosis          why runs went wrong
fit                the fits of curves
checks             what `check` and `doctor` find before anything trains
design             the resolution of a study's designs
notes              what people have written about a sweep, its variants and its runs
campaign           a loop that improves by itself: the answer about one proposal, and what was tried
audit              kept answers that a second reading judges differently
"""
