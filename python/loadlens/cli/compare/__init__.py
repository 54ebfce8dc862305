"""The verbs `compare` (its flags, and the wiring to records and live pairs) and `history`."""
