"""A run over time, from its record while it is written: what the page in a browser and terminals show.

`load.py` and `service.py` turn the files of a trial into columns over time, `trial.py` follows both,
`runs.py` turns the events of a run into its state. Nothing here asks the process that makes the run.
"""
