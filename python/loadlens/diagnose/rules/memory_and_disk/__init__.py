"""Rules about memory, disks, logs, and growth over time."""
