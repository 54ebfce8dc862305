"""Calls to the carrier. Both take time over there and cost nothing here."""
import time
import uuid

from django.conf import settings


def check_address(postcode):
    time.sleep(settings.ADDRESS_SECONDS)
    return postcode.strip().upper()


def print_label(sku, postcode):
    time.sleep(settings.CARRIER_SECONDS)
    return f"{sku}-{postcode}-{uuid.uuid4().hex[:8]}"
