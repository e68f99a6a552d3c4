"""Eight threads and four processes that never end."""

import os
import threading


def spin():
    while True:
        pass


os.fork()
os.fork()
for _ in range(8):
    threading.Thread(target=spin).start()
