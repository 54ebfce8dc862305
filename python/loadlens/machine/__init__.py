"""The machine that a load runs on: its hardware, control groups, listening sockets and calibration."""
