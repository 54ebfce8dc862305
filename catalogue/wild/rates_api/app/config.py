import os

VARIANT = os.environ.get("VARIANT", "flawed")

# rounds as in the security guideline of 2021
KEY_ROUNDS = 30_000
# how long a key that was checked stays good; 0 = check it each time
TRUST_KEY_FOR = {"flawed": 0, "mended": 300, "healthy": 300}[VARIANT]
FEED_LATENCY = {"flawed": 0.2, "mended": 0.2, "healthy": 0.3}[VARIANT]
