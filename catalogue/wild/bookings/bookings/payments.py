"""Client of the card payment provider."""
import time
import uuid

from . import config


def authorise(amount_cents: int) -> str:
    # the provider's sandbox: slow, and it never says no
    time.sleep(config.PROVIDER_SECONDS)
    return f"auth-{amount_cents}-{uuid.uuid4().hex[:10]}"
