"""The parts of the page Compare, each a fragment that reruns alone.

progress    progress of the runs
verdicts    changes of each variant, the findings, and advice for settling open questions
grid        the cells and main effects of a grid
curves      readings, fits and forecasts
planes      forest plots, the plane of ceiling and efficiency, the linearised view
metrics     one training metric of all runs
"""
