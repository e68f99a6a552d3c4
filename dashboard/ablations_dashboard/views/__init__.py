"""One file per page: `sweep` and `forecast`."""
