"""Steering: a sweep that decides while it trains. A map of the room:

    stopping     rules for ending a run early, from posterior draws
    live_fits    fits of runs that still grow
    steering     both while the pool trains

`ablations.home.stops` keeps the decisions. Steering is off unless a sweep file has `stop:`.
"""
