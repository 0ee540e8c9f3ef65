"""URL wiring: the API at the root, the admin page below /admin/, every error as JSON."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("derender_api.urls")),
]

handler400 = "derender_api.views_errors.bad_request"
handler403 = "derender_api.views_errors.permission_denied"
handler404 = "derender_api.views_errors.not_found"
handler500 = "derender_api.views_errors.server_error"
