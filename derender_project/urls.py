"""URL wiring: the API at the root, the admin page below /admin/, every error as JSON."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from derender_api.urls import urlpatterns as api_patterns

# The routes of the API come first and without an include of their own: resolving is a part of every small call.
urlpatterns = [
    *api_patterns,
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", include("derender_api.workbench.urls")),
    path("admin/", admin.site.urls),
]

handler400 = "derender_api.views_errors.bad_request"
handler403 = "derender_api.views_errors.permission_denied"
handler404 = "derender_api.views_errors.not_found"
handler500 = "derender_api.views_errors.server_error"
