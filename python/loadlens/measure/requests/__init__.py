"""Measurements that need single requests: slow paths, pauses, connections, failures."""
