#!/usr/bin/env python
"""Runs Django's management commands: `python manage.py serve`, `python manage.py run_parity`, ..."""

from derender_project.command_line import main

if __name__ == "__main__":
    main()
