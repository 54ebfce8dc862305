"""The whole site in one module: settings, views, urls."""
import os
import time

import django
from django.conf import settings
from django.http import HttpResponse
from django.template import Context, Engine
from django.urls import path

VARIANT = os.environ.get("VARIANT", "flawed")
if not settings.configured:
    settings.configure(
        SECRET_KEY="x" * 50,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="blog.site",
        INSTALLED_APPS=["blog"],
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": "postgres",
                "USER": "postgres",
                "HOST": os.environ["PGHOST"],
                "CONN_MAX_AGE": 3600,
            }
        },
    )
    django.setup()

from django.db.models import Count  # noqa: E402

from .models import Author, Comment, Post  # noqa: E402

PAGE = Engine().from_string(
    "<ul>{% for p in posts %}<li><b>{{ p.title }}</b> by {{ p.by }}, {{ p.n }} comments</li>{% endfor %}</ul><hr>{{ ad }}"
)


def advert():
    time.sleep(0.6 if VARIANT == "healthy" else 0.4)  # the advertising network
    return "<i>Buy more lamps</i>"


def latest(limit=25):
    if VARIANT == "flawed":
        for post in Post.objects.order_by("-published")[:limit]:
            yield {"title": post.title, "by": post.author.name, "n": post.comments.count()}
    else:
        posts = Post.objects.select_related("author").annotate(n=Count("comments")).order_by("-published")[:limit]
        for post in posts:
            yield {"title": post.title, "by": post.author.name, "n": post.n}


def home(request):
    return HttpResponse(PAGE.render(Context({"posts": list(latest()), "ad": advert()})))


def fill():
    from django.db import connection

    with connection.schema_editor() as schema:
        for model in (Author, Post, Comment):
            schema.create_model(model)
    authors = Author.objects.bulk_create(Author(name=f"Author {n}") for n in range(12))
    posts = Post.objects.bulk_create(Post(title=f"Post number {n}", author=authors[n % 12]) for n in range(30))
    Comment.objects.bulk_create(Comment(post=posts[n % 30], text="I agree. " * 8) for n in range(600))


urlpatterns = [path("", home), path("robots.txt", lambda r: HttpResponse("User-agent: *\n", content_type="text/plain"))]
