"""Reports and results on a terminal, as wide as it is; the same words as in every other medium."""
