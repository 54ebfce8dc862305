from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=60)

    class Meta:
        app_label = "blog"


class Post(models.Model):
    title = models.CharField(max_length=120)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    published = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "blog"


class Comment(models.Model):
    post = models.ForeignKey(Post, on_delete=models.CASCADE, related_name="comments")
    text = models.TextField()

    class Meta:
        app_label = "blog"
