"""Routes of the API. The paths are those of vLLM's render server (protocol 1), without trailing slashes."""

from django.urls import path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView

from derender_api import views, views_operations, views_render, views_server
from derender_api.gateway import views as views_gateway

urlpatterns = [
    path("v1/chat/completions/derender", views.ChatDerenderView.as_view()),
    path("v1/completions/derender", views.CompletionDerenderView.as_view()),
    path("v1/chat/completions/render", views_render.ChatRenderView.as_view()),
    path("v1/completions/render", views_render.CompletionRenderView.as_view()),
    path("v1/chat/completions", views_gateway.ChatView.as_view()),
    path("v1/completions", views_gateway.CompletionView.as_view()),
    path("tokenize", views.TokenizeView.as_view()),
    path("detokenize", views.DetokenizeView.as_view()),
    path("v1/models", views_server.ModelListView.as_view()),
    path("health", views_server.HealthView.as_view()),
    path("ping", views_server.PingView.as_view()),
    path("version", views_server.VersionView.as_view()),
    path("load", views_server.LoadView.as_view()),
    path("ready", views_operations.ReadyView.as_view()),
    path("metrics", views_operations.MetricsView.as_view()),
    path("kv_event_sources", views_server.KvEventSourcesView.as_view()),
    path("openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("docs", SpectacularSwaggerView.as_view(url_name="openapi"), name="docs"),
]
