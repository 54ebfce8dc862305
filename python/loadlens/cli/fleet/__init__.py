"""Fleets of machines, from the command line."""
