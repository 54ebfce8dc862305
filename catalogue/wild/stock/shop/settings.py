import os

VARIANT = os.environ.get("VARIANT", "flawed")
SECRET_KEY = "only-for-this-machine"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["shop"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": os.environ.get("PGHOST", ""),
        "CONN_MAX_AGE": None,
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

CARRIER_SECONDS = 0.03
ADDRESS_SECONDS = 0.5 if VARIANT == "healthy" else 0.35
RESERVE = "shop.reserve.in_one_transaction" if VARIANT == "flawed" else "shop.reserve.label_first"
