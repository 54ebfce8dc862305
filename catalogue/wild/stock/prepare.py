"""Tables and the first goods."""
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.db import connection  # noqa: E402
from shop.models import Item, Reservation  # noqa: E402

with connection.schema_editor() as editor:
    editor.create_model(Item)
    editor.create_model(Reservation)
Item.objects.bulk_create(Item(sku=f"LAMP-{n}", on_hand=10_000_000) for n in range(1, 30))
