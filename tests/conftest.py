"""What holds for every test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# An example that takes long says something of the machine, and nothing of what is tested.
settings.register_profile("loadlens", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loadlens")
