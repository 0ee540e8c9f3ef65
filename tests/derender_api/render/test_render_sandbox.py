"""Chat templates of requests: who may bring one, and what becomes of those that do not end or grow."""

import pytest
from django.conf import settings

from derender_api.exceptions import BadRequest, ServiceUnavailable
from derender_api.render import sandbox
from derender_api.render.sandbox import render_untrusted
from tests.derender_api.support import MESSAGES, error, post, served

CHAT = "/v1/chat/completions/render"
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
MORE_THAN_MEMORY = "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"


def rendered(template, **variables):
    return render_untrusted({"chat_template": template, "messages": MESSAGES, "variables": variables})


def test_a_template_is_rendered_like_the_models_own():
    assert rendered("{{ messages[0].content }} {{ tools | tojson }}", tools=[{"a": 1}]) == 'hi [{"a": 1}]'


@pytest.mark.parametrize("template", [MORE_THAN_MEMORY, "{{ 'a' * 10**10 }}", "{{ '%1000000000d' % 1 }}"])
def test_a_template_that_grows_is_stopped(template):
    with pytest.raises(BadRequest, match="was stopped"):
        rendered(template)


def test_a_template_that_does_not_end_is_stopped_and_the_next_one_is_rendered(monkeypatch):
    monkeypatch.setitem(settings.DERENDER, "REQUEST_TEMPLATE_SECONDS", 0.2)
    with pytest.raises(BadRequest, match="took too long"):
        rendered(ENDLESS)
    monkeypatch.setitem(settings.DERENDER, "REQUEST_TEMPLATE_SECONDS", 30.0)

    assert rendered("ok") == "ok"


def test_a_long_text_is_refused(monkeypatch):
    monkeypatch.setitem(settings.DERENDER, "REQUEST_TEMPLATE_CHARACTERS", 10)

    assert rendered("{{ 'a' * 10 }}") == "a" * 10
    with pytest.raises(BadRequest, match="too long a text"):
        rendered("{{ 'a' * 11 }}")


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
def test_a_process_that_does_not_start_is_no_fault_of_the_client(monkeypatch, executable):
    monkeypatch.setattr(sandbox, "_pool", sandbox._Pool())
    monkeypatch.setattr(sandbox.sys, "executable", executable)

    with pytest.raises(ServiceUnavailable, match="their process does not start"):
        rendered("ok")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{% include '/etc/passwd' %}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{{ raise_exception('no') }}",
        "x" * (sandbox.LONGEST_TEMPLATE + 1),
    ],
)
def test_what_a_template_must_not_do_is_a_bad_request(template):
    with pytest.raises(BadRequest):
        rendered(template)


def test_the_process_knows_no_secrets(monkeypatch):
    started = []
    popen = sandbox.subprocess.Popen
    monkeypatch.setattr(
        sandbox.subprocess, "Popen", lambda *args, **kwargs: started.append(kwargs) or popen(*args, **kwargs)
    )
    monkeypatch.setenv("DERENDER_SECRET_KEY", "secret")
    monkeypatch.setattr(sandbox, "_pool", sandbox._Pool())

    assert rendered("ok") == "ok"
    assert set(started[0]["env"]) == {"PATH", "PYTHONPATH"}


def test_only_trusted_requests_bring_templates():
    body = {"messages": MESSAGES, "chat_template": "{{ messages[0].content }}!"}
    with served():
        status, answer = post(CHAT, body)
        assert status == 400
        assert answer["error"]["message"].startswith("Chat template is passed with request")
    with served(trust_request_chat_template=True) as model:
        assert post(CHAT, body)[1]["token_ids"] == model.tokenizer.encode("hi!")


@pytest.mark.parametrize("template", ["{{ bad", "{% if true %}" * 20_000, "(" * 5 + "{{" + "(" * 50_000])
def test_broken_templates_are_bad_requests(template):
    with served(trust_request_chat_template=True):
        assert post(CHAT, {"messages": MESSAGES, "chat_template": template})[0] == 400


def test_reserved_names_are_no_variables():
    with served():
        body = {"messages": MESSAGES, "chat_template_kwargs": {"messages": [], "conversation": 1}}
        assert post(CHAT, body) == error("chat_template_kwargs must not hold 'conversation', 'messages'.")
