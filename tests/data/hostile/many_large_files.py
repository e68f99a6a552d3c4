"""Fills its folder with many files of the largest size."""

for number in range(100):
    with open(f"large-{number}", "wb") as file:
        for _ in range(15):
            file.write(b"x" * (1 << 20))
