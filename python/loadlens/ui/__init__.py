"""The page in a browser: a server on loopback that shows records, while they are written and afterwards.

It reads records and their event streams and nothing else, so that a reload, a second tab or a run that was
started elsewhere make no difference. `watch.py` follows them (`follow/`), `server.py` answers requests.
"""
