"""ASGI entry point: `derender_project.asgi:application`.

The service is measured and shipped on WSGI; this module serves hosts that only run ASGI.
"""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "derender_project.settings")

application = get_asgi_application()
