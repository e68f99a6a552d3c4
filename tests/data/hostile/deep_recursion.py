"""Recurses in C until the stack is gone."""

import sys

sys.setrecursionlimit(1 << 30)


class Endless:
    def __repr__(self):
        return repr([self])


repr(Endless())
