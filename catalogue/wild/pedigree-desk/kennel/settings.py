import os

DEBUG = False
SECRET_KEY = "development-only"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "kennel.urls"
INSTALLED_APPS = []
MIDDLEWARE = ["kennel.middleware.Measure", "django.middleware.common.CommonMiddleware"]
USE_TZ = True
LOGGING_CONFIG = None

VARIANT = os.environ.get("VARIANT", "flawed")
REGISTRY = ("127.0.0.1", int(os.environ.get("PORT", "8000")) + 1)
