from django.urls import path

from premiums import views

urlpatterns = [
    path("quotations/<slug:hull>", views.quotation),
    path("alive", views.alive),
]
