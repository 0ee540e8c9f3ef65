"""Django settings. Everything that differs between installations comes from the environment (environment.py)."""

import secrets
from pathlib import Path

import dj_database_url
from django.core.exceptions import ImproperlyConfigured
from pydantic import ValidationError

from derender_project.admin_theme import UNFOLD as UNFOLD
from derender_project.environment import Environment, problems_of

try:
    ENVIRONMENT = Environment()
except ValidationError as error:
    raise ImproperlyConfigured("\n".join(problems_of(error))) from None
BASE_DIR = Path(__file__).resolve().parent.parent

DEBUG = ENVIRONMENT.debug
# Signs stream states and admin sessions. Without one of its own, a server makes one up at every start: its workers
# share it, a restart or a second host does not.
SECRET_KEY = ENVIRONMENT.secret_key or secrets.token_urlsafe(50)
SECRET_KEY_FALLBACKS = ENVIRONMENT.secret_key_fallbacks
ALLOWED_HOSTS = ENVIRONMENT.allowed_hosts
CSRF_TRUSTED_ORIGINS = ENVIRONMENT.csrf_trusted_origins

DERENDER = {
    "MODELS": [],
    "CONFIG": ENVIRONMENT.config,
    "API_KEY": ENVIRONMENT.api_key,
    "REQUIRE_API_KEYS": ENVIRONMENT.require_api_keys,
    "MAX_CONCURRENT_REQUESTS": ENVIRONMENT.max_concurrent_requests,
    "MAX_BODY_BYTES": ENVIRONMENT.max_body_bytes,
    "MAX_BODY_SECONDS": ENVIRONMENT.max_body_seconds,
    "LOG_CONTENT": ENVIRONMENT.log_content,
    "MAX_N_SEQUENCES": ENVIRONMENT.max_n_sequences,
    "MAX_STOP_STRINGS": ENVIRONMENT.max_stop_strings,
    "MAX_COMPLETION_PROMPTS": ENVIRONMENT.max_completion_prompts,
    "REQUEST_TEMPLATE_SECONDS": ENVIRONMENT.request_template_seconds,
    "REQUEST_TEMPLATE_CHARACTERS": ENVIRONMENT.request_template_characters,
    "SYSTEM_START_DATE": ENVIRONMENT.system_start_date,
    "MODELS_REFRESH_SECONDS": ENVIRONMENT.models_refresh_seconds,
    "PARSER_CACHE_ENTRIES": ENVIRONMENT.parser_cache_entries,
    "PARSER_CACHE_BYTES": ENVIRONMENT.parser_cache_bytes,
    "PARSER_CACHE_SECONDS": ENVIRONMENT.parser_cache_seconds,
    "CONTEXT_CACHE_SECONDS": ENVIRONMENT.context_cache_seconds,
    "ENGINE_API_KEY": ENVIRONMENT.engine_api_key,
    "ENGINE_CONNECT_SECONDS": ENVIRONMENT.engine_connect_seconds,
    "ENGINE_READ_SECONDS": ENVIRONMENT.engine_read_seconds,
    "MODEL_VALIDATORS": ["derender_api.catalog.validate_loadable"],
    "MODEL_INSPECTOR": "derender_api.model_inspection.inspector",
}

INSTALLED_APPS = [
    # The theme stands before the admin, whose templates it replaces.
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "parsers.apps.ParsersConfig",
    "derender_api.apps.DerenderApiConfig",
    "derender_api.workbench.apps.WorkbenchConfig",
]

MIDDLEWARE = [
    "derender_api.observation.ObservationMiddleware",
    "derender_api.middleware.ApiKeyMiddleware",
    "derender_api.middleware.BodyLimitMiddleware",
    "derender_api.middleware.AdmissionMiddleware",
    "derender_project.middleware.PagesSecurity",
    "derender_project.middleware.PagesStatic",
    "derender_project.middleware.PagesSession",
    "derender_project.middleware.PagesCsrf",
    "derender_project.middleware.PagesAuthentication",
    "derender_project.middleware.PagesMessages",
    "derender_project.middleware.PagesFrames",
]

ROOT_URLCONF = "derender_project.urls"
WSGI_APPLICATION = "derender_project.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": dj_database_url.parse(
        ENVIRONMENT.database_url or f"sqlite:///{Path.cwd() / 'derender.sqlite3'}",
        conn_max_age=600,
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Write-ahead logging lets the workers read while the admin page writes.
    DATABASES["default"]["OPTIONS"] = {
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        "transaction_mode": "IMMEDIATE",
        "timeout": 5,
    }
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # The table of served models is read in the course of requests: an unreachable host must not hold them up.
    options = DATABASES["default"].setdefault("OPTIONS", {})
    options.setdefault("connect_timeout", 2)
    # Milliseconds after which a host that no longer answers is given up.
    options.setdefault("tcp_user_timeout", 5000)


def _cache(name: str) -> dict[str, object]:
    """In each worker's memory, or shared by all workers and servers."""
    if ENVIRONMENT.cache_url:
        return {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": ENVIRONMENT.cache_url,
            # Seconds: a host that does not answer must not hold requests up.
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 1},
        }
    memory = "django.core.cache.backends.locmem.LocMemCache"
    return {"BACKEND": memory, "LOCATION": name, "OPTIONS": {"MAX_ENTRIES": 1000}}


# What clients need not send again, and the requests per minute of API keys.
CACHES = {name: _cache(name) for name in ("default", "limits")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Cookies and connections of the pages. The API has no cookies, and is not redirected.
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENVIRONMENT.production
SECURE_HSTS_SECONDS = ENVIRONMENT.hsts_seconds if ENVIRONMENT.production else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENVIRONMENT.behind_proxy else None
X_FRAME_OPTIONS = "DENY"
# The checks look for Django's own classes; their subclasses for pages are in place (derender_project/middleware.py).
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]

# Django's own check of bodies would answer 400; the limit is enforced by BodyLimitMiddleware, which answers 413.
DATA_UPLOAD_MAX_MEMORY_SIZE = None

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["derender_api.renderers.OrjsonRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "derender_api.negotiation.JsonAlways",
    # vLLM answers OPTIONS with 405; the framework's default would describe the view.
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "derender_api.exception_handler.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "derender",
    "DESCRIPTION": "Token IDs of an inference engine to complete OpenAI-compatible responses, without a GPU.",
    "VERSION": "0.1.0",
    # The wire models describe themselves in the JSON Schema of OpenAPI 3.1.
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    # A key is demanded below /v1 where there is any: the page at /docs has a field for it.
    "APPEND_COMPONENTS": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "SECURITY": [{}, {"key": []}],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {"()": "derender_api.log_format.JsonLines"},
        "text": {
            "()": "derender_api.log_format.TextLines",
            "format": "%(asctime)s %(levelname)s %(name)s%(request)s: %(message)s",
        },
    },
    "filters": {
        "failures": {"()": "django.utils.log.CallbackFilter", "callback": lambda record: bool(record.exc_info)}
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "json" if ENVIRONMENT.logs_json else "text"}
    },
    "root": {"handlers": ["console"], "level": ENVIRONMENT.log_level},
    "loggers": {
        # A line per refused request would let any client fill the log.
        "django.request": {"level": "ERROR", "filters": ["failures"]},
        "uvicorn": {"level": "ERROR"},
        # Clients of engines, a line per request.
        "httpx": {"level": "WARNING"},
        "derender.access": {"level": "INFO" if ENVIRONMENT.access_log else "CRITICAL"},
    },
}
