"""Running: one trial, and a study's trials one after the other. Writes the record, judges nothing.

`trial.run_trial` drives the engine through one plan, for `hit` as for a study; `study.run_study` brings the
testbed up around it, watches, puts data back, seals, repeats what was invalid, and can be stopped and
taken up again.
"""
