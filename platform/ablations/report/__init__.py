"""What a sweep's reader sees: figures, tables and the page. A map of the room:

page        the report, one HTML file
tables      comparisons and fits for the terminal
headings    of the tables that the page and the dashboard share
curves      pass rate against compute, with fits, forecasts and asymptotes
verdicts    level, ceiling and compute of every variant, with intervals
linearised  readings on axes on which eq. 1 is a straight line (paper mode)
forecast    pass rates to ten budgets, and who is likely to lead there
axes        what part of compute and pass rate a figure of curves shows
colours     the colour and marker of each variant
style       the look that all figures share

Figures are Plotly's, made once from plain data: the report, the page and MLflow show the same ones. Points are measured
(hollow ones were not fitted), lines are fitted, dashes are extrapolated, a band is the 95 % interval of the fitted
curve. Plotly is imported inside functions: the command line must start quickly.
"""
