"""Pages of the workbench below /admin/; each asks for a login, as the admin's own pages do."""

from django.contrib import admin
from django.urls import path

from derender_api.workbench.parity.views import difference, run
from derender_api.workbench.playground.views import playground

app_name = "workbench"
urlpatterns = [
    path("playground/", admin.site.admin_view(playground), name="playground"),
    path("parity/<int:pk>/", admin.site.admin_view(run), name="run"),
    path("parity/differences/<int:pk>/", admin.site.admin_view(difference), name="difference"),
]
