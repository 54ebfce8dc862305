"""The `loadlens wrk` verb, its scripts and the output layout of wrk."""
