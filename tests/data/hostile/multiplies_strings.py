"""A few characters that ask for a petabyte, again and again."""

bomb = "lol"
for _ in range(15):
    bomb = bomb * 10000
print(len(bomb))
