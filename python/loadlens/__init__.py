"""Loadlens: see what your service does under load, and why."""

from __future__ import annotations

__version__ = "0.1.0"
