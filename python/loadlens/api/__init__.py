"""Loadlens from Python: verbs as functions, results as objects.

`verbs.py` calls what the command line calls, so both show the same numbers; `results.py` holds the answer,
`measured.py` a figure that knows its interval, `notebook.py` what a notebook shows. `import loadlens` loads
nothing of it before the first call.
"""
