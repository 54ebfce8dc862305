"""Running: one trial, or all trials of a study. Writes the record; evaluates nothing.

`engine_trial.run_trial` runs the engine through one plan, for `hit` and for studies alike.
`trial_runner.TrialRunner` starts and stops the testbed around a trial, monitors it and seals the trial;
`study_runner.run_study` orders and repeats the trials of a study, and can be stopped and resumed.
"""

from loadlens._callable import make_callable

make_callable(__name__)
