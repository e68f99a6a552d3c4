"""Steering: a sweep that decides while it trains. A map of the room:

    stopping     when a run may end early, from posterior draws
    allocation   a total shared out in rounds: who gets more
    live_fits    fits of runs that still grow
    steering     all of that while the pool trains

What was decided is in `ablations.home`: stops and allocation. Off unless a sweep file has `stop:` or
`budget: {total: ...}`.
"""
