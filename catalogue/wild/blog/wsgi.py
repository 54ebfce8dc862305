import blog.site  # noqa: F401  configures
from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
