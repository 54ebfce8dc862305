"""Reports and results on a terminal of 80 columns; the same words as in every other medium."""
