"""Rules about the measurement itself: generator, steady state, accounting, sample size."""
