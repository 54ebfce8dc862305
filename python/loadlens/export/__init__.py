"""The numbers of a record in the formats of other systems.

`tally.py` adds up counters and histograms of a trial, once for all formats; a file per format writes them.
All of it reads the record alone. Names follow OpenTelemetry's semantic conventions where they have one.
"""
