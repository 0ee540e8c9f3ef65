"""What a chat template expects of messages, read from its syntax tree: content as text or parts, a developer role.

A template that loops over the content of a message gets lists of parts, every other one gets text. Only what vLLM
recognises counts, so that the same requests give the same prompts: the loop variable of a loop over `messages` (or
over a variable made of them), the plain name `content`, and macros that are called with one of these.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from derender_api.exceptions import BadRequest

MESSAGES = "messages"
CONTENT = "content"
DEVELOPER = "developer"
REMEMBERED_TEMPLATES = 256


@dataclass(frozen=True, slots=True)
class TemplateTraits:
    """What a template expects. `wants_parts`: content as a list of parts; `knows_developer`: it has that role."""

    wants_parts: bool
    knows_developer: bool


@lru_cache(maxsize=REMEMBERED_TEMPLATES)
def traits_of(template: str) -> TemplateTraits:
    """The traits of a chat template. Raises BadRequest where it is no Jinja template."""
    try:
        tree = _environment().parse(template)
    except TemplateError as error:
        raise BadRequest(str(error)) from error
    except RecursionError as error:
        raise BadRequest("The chat template is nested too deeply.") from error
    return TemplateTraits(
        wants_parts=_loops_over_content(tree),
        knows_developer=any(node.value == DEVELOPER for node in tree.find_all(nodes.Const)),
    )


class _Generation(Extension):
    """The tag that marks an assistant's text for training; its inside counts."""

    tags: ClassVar[set[str]] = {"generation"}  # type: ignore[misc]

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    extensions = ["jinja2.ext.loopcontrols", _Generation]
    return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)


def _loops_over_content(tree: nodes.Template) -> bool:
    message_names = _message_names(tree)
    macros = list(tree.find_all(nodes.Macro))
    inside = {id(loop) for macro in macros for loop in macro.find_all(nodes.For)}
    for loop in tree.find_all(nodes.For):
        if id(loop) not in inside and _is_content(_stripped(loop.iter), message_names):
            return True
    return any(_is_called_with_content(macro, tree, message_names) for macro in macros)


def _is_called_with_content(macro: nodes.Macro, tree: nodes.Template, message_names: set[str]) -> bool:
    """Whether a macro that loops over one of its parameters is given a message's content as that."""
    parameters = [parameter.name for parameter in macro.args]
    looped = {name.name for loop in macro.find_all(nodes.For) if isinstance(name := _stripped(loop.iter), nodes.Name)}
    for call in tree.find_all(nodes.Call):
        if not (isinstance(call.node, nodes.Name) and call.node.name == macro.name):
            continue
        given = [*zip(parameters, call.args, strict=False), *((each.key, each.value) for each in call.kwargs)]
        if any(name in looped and _is_content(_stripped(value), message_names) for name, value in given):
            return True
    return False


def _message_names(tree: nodes.Template) -> set[str]:
    """Loop variables that stand for a message."""
    aliases = {MESSAGES}
    assignments = list(tree.find_all(nodes.Assign))
    for _ in assignments:
        found = {
            target.name
            for each in assignments
            if isinstance(target := each.target, nodes.Name) and _holds_messages(each.node, aliases)
        }
        if found <= aliases:
            break
        aliases |= found
    loops = tree.find_all(nodes.For)
    return {
        loop.target.name
        for loop in loops
        if isinstance(loop.target, nodes.Name) and _holds_messages(loop.iter, aliases)
    }


def _holds_messages(node: nodes.Node, aliases: set[str]) -> bool:
    """Whether an expression is the messages, some of them, or a namespace with them."""
    node = _stripped(node)
    match node:
        case nodes.Name():
            return node.name in aliases
        case nodes.Call(node=nodes.Name(name="namespace")):
            return any(_holds_messages(each.value, aliases) for each in node.kwargs)
        case nodes.Getattr(node=nodes.Name() as owner):
            return owner.name in aliases - {MESSAGES}
        case _:
            return False


def _stripped(node: nodes.Node) -> nodes.Node:
    """An expression without filters and slices."""
    while True:
        match node:
            case nodes.Filter(node=nodes.Expr() as inner) | nodes.Getitem(node=inner, arg=nodes.Slice()):
                node = inner
            case _:
                return node


def _is_content(node: nodes.Node, message_names: set[str]) -> bool:
    match node:
        case nodes.Name():
            return node.name == CONTENT
        case nodes.Getattr(node=nodes.Name() as owner, attr=key):
            return key == CONTENT and owner.name in message_names
        case nodes.Getitem(node=nodes.Name() as owner, arg=nodes.Const(value=key)):
            return key == CONTENT and owner.name in message_names
        case _:
            return False
