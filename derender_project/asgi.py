"""ASGI entry point: `derender_project.asgi:application`.

`manage.py serve` puts `derender_api.dispatch` in front of it; this module serves hosts that bring their own server.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "derender_project.settings")

application = get_asgi_application()
