"""Uses nothing, and never ends."""

import time

time.sleep(10**6)
