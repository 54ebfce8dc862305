"""Frozen types that the floors above hand to each other. No logic, no I/O."""
