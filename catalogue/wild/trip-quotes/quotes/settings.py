import os

VARIANT = os.environ.get("VARIANT", "flawed")
TIMETABLE_URL = os.environ.get("TIMETABLE_URL", "http://127.0.0.1:8001")
LINE_URL = os.environ.get("LINE_URL", "http://127.0.0.1:8002")

BREAKER = VARIANT != "flawed"
LINE_TRIES = 1 if BREAKER else 3
LINE_TIMEOUT = 1.0 if BREAKER else 0.2
