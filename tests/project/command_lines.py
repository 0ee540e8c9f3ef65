"""Command lines of files and documents, checked against the commands and flags that there are."""

import re
import shlex
from functools import cache

from django.core.management import get_commands, load_command_class

INVOCATION = re.compile(r"(?:^|[/\s])(?:manage\.py|derender)\s+(?!derender\b)(?=[a-z])")
FLAG = re.compile(r"--[a-z][\w-]*")


@cache
def flags_of(command: str) -> frozenset[str]:
    """Every `--flag` of a management command."""
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    return frozenset(option for action in parser._actions for option in action.option_strings)


def problems_of(line: str) -> list[str]:
    """What is wrong with a line that calls `manage.py` or `derender`; nothing with other lines."""
    called = INVOCATION.search(line)
    if called is None:
        return []
    command, *words = shlex.split(line[called.end() :], comments=True)
    return problems_of_words([command, *words])


def problems_of_words(words: list[str]) -> list[str]:
    """What is wrong with a management command and its arguments."""
    command, *arguments = words
    if command not in get_commands():
        return [f"there is no command {command}"]
    named = [match[0] for word in arguments if (match := FLAG.match(word))]
    return [f"{command} has no {flag}" for flag in named if flag not in flags_of(command)]
