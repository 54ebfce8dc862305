from django.db import transaction
from django.db.models import F

from . import carrier
from .models import Item, Reservation


class SoldOut(Exception):
    pass


def in_one_transaction(sku, postcode):
    with transaction.atomic():
        item = Item.objects.select_for_update().get(sku=sku)
        if item.on_hand < 1:
            raise SoldOut
        label = carrier.print_label(sku, postcode)
        item.on_hand -= 1
        item.save(update_fields=["on_hand"])
        Reservation.objects.create(item=item, label=label)
    return label


def label_first(sku, postcode):
    label = carrier.print_label(sku, postcode)
    with transaction.atomic():
        item = Item.objects.get(sku=sku)
        Reservation.objects.create(item=item, label=label)
        if not Item.objects.filter(sku=sku, on_hand__gte=1).update(on_hand=F("on_hand") - 1):
            raise SoldOut
    return label
