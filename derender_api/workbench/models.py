"""Tables of the workbench: runs of the parity suites with their figures, and cases saved in the playground."""

import json
from typing import Any, ClassVar

from django.conf import settings
from django.db import models


class ParityRun(models.Model):
    """One `manage.py run_parity --save`. `rules` holds the counts of all profiles, by rule (parity.results.Tally)."""

    created = models.DateTimeField(auto_now_add=True)
    label = models.CharField(max_length=255, blank=True, help_text="What was run: a version, a branch, a reason.")
    version = models.CharField(max_length=64, help_text="Version of this service.")
    seconds = models.FloatField()
    cases = models.PositiveIntegerField()
    failing = models.PositiveIntegerField()
    rules = models.JSONField()
    paths = models.TextField(help_text="What was driven, and how.")
    stale = models.JSONField(default=list, help_text="Divergences that no case of the run needed.")

    class Meta:
        """Newest first."""

        ordering = ("-created", "-id")
        verbose_name = "parity run"

    def __str__(self) -> str:
        return f"Run {self.pk}" + (f": {self.label}" if self.label else "")


class ProfileFigures(models.Model):
    """One profile of a run. `rules`: counts by rule; `problem`: why it could not be run."""

    run = models.ForeignKey(ParityRun, on_delete=models.CASCADE, related_name="profiles")
    suite = models.CharField(max_length=255)
    profile = models.CharField(max_length=255)
    cases = models.PositiveIntegerField()
    problem = models.TextField(blank=True)
    rules = models.JSONField(default=dict)
    diverging = models.PositiveIntegerField(default=0)
    excused = models.PositiveIntegerField(default=0)
    failing = models.PositiveIntegerField(default=0)

    class Meta:
        """In the order of the run's report."""

        ordering = ("id",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("run", "suite", "profile"), name="workbench_one_profile_a_run")
        ]

    def __str__(self) -> str:
        return f"{self.suite}/{self.profile}"


class Difference(models.Model):
    """One answer that differs from what a rule demands. `expected` and `got`: chunks, answers or bodies."""

    figures = models.ForeignKey(ProfileFigures, on_delete=models.CASCADE, related_name="differences")
    case = models.CharField(max_length=255)
    rule = models.CharField(max_length=32)
    stream = models.CharField(max_length=64, blank=True, help_text="Grouping of the tokens; empty: one-shot.")
    detail = models.TextField(blank=True)
    expected = models.JSONField(null=True)
    got = models.JSONField(null=True)
    source = models.JSONField(null=True, help_text="Profile, tokenizer folder and case, to try it in the playground.")

    class Meta:
        """In the order of the run's report."""

        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.case} ({self.rule}{f', {self.stream}' if self.stream else ''})"


class SavedCase(models.Model):
    """A case saved in the playground: a profile and a case in the form of the suites (tests/data/parity/README.md).

    Its answers are this service's own at the time, so that a run shows what changes later; `record_parity` replaces
    them by another server's.
    """

    case_id = models.SlugField(max_length=100, unique=True, help_text="The case's id in its suite.")
    note = models.TextField(blank=True, help_text="What it is about.")
    profile = models.JSONField(help_text="An entry of profiles.json.")
    line = models.TextField(help_text="A line of cases.jsonl.gz; as text, since databases change the order of keys.")
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        """Newest first."""

        ordering = ("-created", "-id")
        verbose_name = "saved case"

    def __str__(self) -> str:
        return self.case_id

    @property
    def case(self) -> dict[str, Any]:
        """The case."""
        found: dict[str, Any] = json.loads(self.line)
        return found
