from django.db import models


class Item(models.Model):
    sku = models.CharField(max_length=20, unique=True)
    on_hand = models.IntegerField()

    class Meta:
        app_label = "shop"


class Reservation(models.Model):
    item = models.ForeignKey(Item, on_delete=models.CASCADE)
    label = models.CharField(max_length=40)

    class Meta:
        app_label = "shop"
