"""Steering: a sweep that decides while it trains. A map of the room:

    stopping     when a run may end early, from posterior draws
    live_fits    fits of runs that still grow
    steering     both while the pool trains

What was decided is in `ablations.home.stops`. Off unless a sweep file has `stop:`.
"""
