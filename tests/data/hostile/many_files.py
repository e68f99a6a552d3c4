"""Makes empty files and folders for ever."""

import os

number = 0
while True:
    os.makedirs(f"{number}/a")
    open(f"{number}/b", "w").close()
    number += 1
