"""Rules about the shape of the load curve."""
