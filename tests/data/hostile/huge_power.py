"""One operation that lasts for hours and looks at no signal."""

print(len(str((10**10**9) ** 99)))
