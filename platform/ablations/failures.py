"""temporary"""

import re


def cause(message: str) -> str:
    """temporary"""
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", message)
