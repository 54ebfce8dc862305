import os

VARIANT = os.environ.get("VARIANT", "")
PORT = int(os.environ.get("PORT", "8000"))

SECRET_KEY = "not-used-for-sessions"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "premiums.urls"
WSGI_APPLICATION = "premiums.wsgi.application"
MIDDLEWARE = ["premiums.plans.PlanMiddleware"]
INSTALLED_APPS = []
DATABASES = {}
USE_TZ = True
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

UNDERWRITER_URL = f"http://127.0.0.1:{PORT + 1}"
DEFAULT_PLAN = "harbour" if VARIANT == "flawed" else "fleet"
PLANS = {
    "harbour": {"calls_per_day": 1_500},
    "marina": {"calls_per_day": 25_000},
    "fleet": {"calls_per_day": 20_000_000},
}
