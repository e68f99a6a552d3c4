"""One module a page; `sweep` is the only one so far."""
