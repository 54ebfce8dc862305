import os

VARIANT = os.environ.get("VARIANT", "flawed")
LANES = 8 if VARIANT == "flawed" else 64
SPREAD_BY = "tenant" if VARIANT == "flawed" else "message"
SIGNING = 0.4 if VARIANT == "healthy" else 0.25
RECEIVER = 0.04
