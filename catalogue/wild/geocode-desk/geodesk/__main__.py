from aiohttp import web

from . import settings
from .app import make_app

web.run_app(make_app(), host="127.0.0.1", port=settings.PORT, access_log=None, backlog=512)
