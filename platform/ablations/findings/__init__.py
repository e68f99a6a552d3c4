"""What a sweep has found, and what a study could find: answers of runs in a home folder. A map of the room:

results         curves, fits and comparison of a sweep
together        several sweeps against one reference
elsewhere       the same for curves that other trainers have left
repeated_runs   what repeated runs of other sweeps say of the spread of runs
order           variants in another order
undecided       what would settle an open question
sweep_forecast  forecasts of the variants of a sweep; backtest: of finished runs from their first part
choices         what a study may change (seeds, budget, samples), and what each choice costs
earlier         what the runs of a home folder say of a scale
foresee         what each choice would see: a table, and the cheapest for a wanted difference
for_claims      the cheapest in which the claims of a study would be seen
design_command  the command that says all of it, for a plan
paper_comparison  the comparison as the paper makes it: its margin of 0.02, its B at a common A
published       numbers that the paper publishes, with their sources
judgement       what an interval says of a claim
card            the claims of a study, judged; written_cards: cards that studies have written, read again
"""
