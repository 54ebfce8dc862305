from os import environ

variant = environ.get("VARIANT", "flawed")
articles = 40_000
tidy_up = variant == "flawed"
profile_latency = 0.3 if variant == "healthy" else 0.2
