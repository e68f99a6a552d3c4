"""The parts of the page Compare, each a fragment that runs again alone.

progress    how far the runs are
verdicts    what each variant changed, what was found of it, and what would decide
curves      readings, fits and forecasts
planes      forest plots, the plane of ceiling and efficiency, the linearised view
metrics     one training metric of all runs
"""
