"""The admin's theme (django-unfold): its name, colours and the sidebar. Everything is served from this machine.

The links of the sidebar are resolved when a page is made, since the URLs are not known yet while settings are read.
"""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def _link(title: str, icon: str, name: str, *, permission: str | None = None) -> dict[str, Any]:
    """One entry of the sidebar, shown to those who have `permission`."""
    entry: dict[str, Any] = {"title": title, "icon": icon, "link": reverse_lazy(name)}
    if permission:

        def allowed(request: HttpRequest) -> bool:
            return request.user.has_perm(permission)

        entry["permission"] = allowed
    return entry


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "derender",
    "SITE_HEADER": "derender",
    "SITE_SUBHEADER": "token IDs to answers",
    "SITE_SYMBOL": "data_object",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("workbench/favicon.svg")},
    ],
    "DASHBOARD_CALLBACK": "derender_api.workbench.overview.overview",
    "STYLES": [lambda request: static("workbench/theme.css")],
    "SITE_URL": None,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "6px",
    "COLORS": {
        "primary": {
            "50": "oklch(98.4% .014 180.7)",
            "100": "oklch(95.3% .051 180.8)",
            "200": "oklch(91% .096 180.4)",
            "300": "oklch(85.5% .138 181.1)",
            "400": "oklch(77.7% .152 181.9)",
            "500": "oklch(62% .118 183)",
            "600": "oklch(51.1% .096 186.4)",
            "700": "oklch(43.7% .078 188.2)",
            "800": "oklch(38.6% .063 188.4)",
            "900": "oklch(33% .053 188.4)",
            "950": "oklch(27.7% .046 192.5)",
        }
    },
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {
                "title": "Serving",
                "separator": True,
                "items": [
                    _link(
                        "Served models",
                        "deployed_code",
                        "admin:parsers_servedmodel_changelist",
                        permission="parsers.view_servedmodel",
                    ),
                    _link(
                        "API keys", "key", "admin:derender_api_apikey_changelist", permission="derender_api.view_apikey"
                    ),
                ],
            },
            {
                "title": "Workbench",
                "separator": True,
                "items": [
                    _link("Playground", "science", "workbench:playground", permission="parsers.view_servedmodel"),
                    _link(
                        "Parity runs",
                        "fact_check",
                        "admin:workbench_parityrun_changelist",
                        permission="workbench.view_parityrun",
                    ),
                    _link(
                        "Saved cases",
                        "inventory_2",
                        "admin:workbench_savedcase_changelist",
                        permission="workbench.view_savedcase",
                    ),
                ],
            },
            {
                "title": "Access",
                "separator": True,
                "items": [
                    _link("Users", "person", "admin:auth_user_changelist", permission="auth.view_user"),
                    _link("Groups", "group", "admin:auth_group_changelist", permission="auth.view_group"),
                ],
            },
        ],
    },
}
