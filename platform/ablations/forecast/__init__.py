"""Forecasts: what more compute would buy, with model error, and whether such forecasts have held. A map of the room:

forecasts   pass rate at any compute, compute to a score, crossings, the cost of a point, who leads
of_sweep    all of that for the variants of a sweep
backtest    forecasts of finished runs from their first part
words       the lines that the command and the page show
"""
