"""Running: one trial, or all trials of a study. Writes the record; evaluates nothing.

`engine_trial.run_trial` runs the engine through one plan, for `hit` and for studies alike.
`study_runner.run_study` starts the testbed, monitors it, resets data, seals trials, repeats invalid ones, and
can be stopped and resumed.
"""
