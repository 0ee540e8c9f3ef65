"""Routes of the API. The paths are those of vLLM's render server (protocol 1), without trailing slashes."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
