"""Figures: each is described once, and drawn on a screen by Plotly and on paper by matplotlib.

curves        pass rate against compute, with fits, bands and asymptotes
forest        differences in level, ceiling and compute of every variant, with intervals
planes        ceiling against compute; readings on axes on which eq. 1 is a straight line (paper mode)
forecast      pass rates to ten budgets, and the chances to lead there
ladder        differences at every scale of a study
plots         the common ones by one call, for Python and notebooks

plotly_chart  any chart on a screen, wide or narrow, light or dark
paper_chart   any chart as SVG, PDF or PNG; matplotlib takes long to import, so it is imported only to draw
layout        where the parts of a chart go on a sheet of some width: plots, labels, legend
axes          ranges of axes, round numbers on them, and readings thinned for a screen
colours       the colour and marker of each variant, and colours on a dark page
chart         what a figure shows, as plain data
"""
