"""Parts of the pages. Those of Compare are fragments that rerun alone; `why` and `rollouts` are parts of the page Run.

progress     progress of the runs
curves       fits, readings and asymptotes
differences  forest plots
verdicts     the table; the findings in words, the meaning of the words, diagnostics of the fits
grid         the cells and main effects of a grid, and pairs of changes
planes       the plane of ceiling and efficiency, the linearised view
metrics      one training metric of all runs
why          why a run went well or wrong
rollouts     what the policy of a run writes
"""
