import os

VARIANT = os.environ.get("VARIANT", "flawed")
TAX_OFFICE_URL = os.environ.get("TAX_OFFICE_URL", "http://127.0.0.1:8081")
DB_POOL_SIZE = int(os.environ.get("DB_POOL_SIZE", "10"))
DB_POOL_TIMEOUT = 30.0
SIGN_WITH_ORDER_OPEN = VARIANT == "flawed"
