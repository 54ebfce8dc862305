"""The study file: parsed, checked, planned into cases and trials."""
