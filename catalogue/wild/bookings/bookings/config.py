import os

VARIANT = os.environ.get("VARIANT", "flawed")
DATABASE = f"postgresql+psycopg://postgres@/postgres?host={os.environ['PGHOST']}"
PROVIDER_SECONDS = {"flawed": 0.4, "mended": 0.4, "healthy": 0.6}[VARIANT]
# give the connection back while the payment provider thinks
SHORT_TRANSACTIONS = VARIANT != "flawed"
THREADS = 120
