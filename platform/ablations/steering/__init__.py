"""Steering: a sweep that decides while it trains. A map of the room:

    stopping     when a run may end early, from posterior draws
    stops        stopped.json: the runs that were ended or flagged, and why
    allocation   a total shared out in rounds; allocation.json: who got what, and why
    live_fits    fits of runs that still grow
    steering     all of that while the pool trains

Off unless a sweep file has `stop:` or `budget: {total: ...}`.
"""
