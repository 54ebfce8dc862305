"""Readers of the collected signals: readings of one trial in, values per process or service out."""
