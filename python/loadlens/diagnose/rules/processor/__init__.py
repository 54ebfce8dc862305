"""Rules about CPU time: cores, event loops, quotas, neighbours."""
