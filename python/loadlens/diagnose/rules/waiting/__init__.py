"""Rules about locks, pools and other places that requests wait for."""
