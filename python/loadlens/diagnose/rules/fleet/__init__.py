"""Rules about the machines of a fleet that makes the load."""
