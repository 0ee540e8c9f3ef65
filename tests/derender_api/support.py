"""A served model for tests, and the requests that are posted to it."""

import json
from contextlib import contextmanager
from pathlib import Path

from django.test import Client

from derender_api.catalog import catalog
from parsers.configuration import ModelConfiguration

TOKENIZERS = Path(__file__).resolve().parents[1] / "data" / "tokenizers"
CHAT = "/v1/chat/completions/derender"
COMPLETION = "/v1/completions/derender"
HELLO, WORLD, END = 2541, 3048, 4002  # "Hello", " world" and the end-of-sequence token of tokenizer chatml
MESSAGES = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]


@contextmanager
def served(tokenizer="chatml", **configuration):
    """Serve one model, named "model", from a tokenizer folder of the test data."""
    with catalog.override([ModelConfiguration(model=str(TOKENIZERS / tokenizer), name="model", **configuration)]):
        yield catalog.resolve(None)


def parsed_model(**configuration):
    """The model with a tool and a reasoning parser."""
    return served(tool_call_parser="hermes", reasoning_parser="qwen3", enable_auto_tool_choice=True, **configuration)


def post(path, body):
    """Status and JSON of the answer to a body: JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Client(raise_request_exception=False).post(path, content, content_type="application/json")
    return response.status_code, json.loads(response.content)


def oneshot(token_ids=(HELLO, WORLD, END), *, choice=(), response=(), **fields):
    """A one-shot chat request with one choice."""
    choice = {"index": 0, "token_ids": list(token_ids), **dict(choice)}
    return {"generate_response": {"request_id": "r1", "choices": [choice], **dict(response)}, **fields}


def chunk(token_ids=(), *, choice=(), response=(), **fields):
    """A streaming request with one choice; the same for chat and completions."""
    choice = {"index": 0, "token_ids": list(token_ids), **dict(choice)}
    return {"stream": True, "generate_chunk": {"request_id": "r1", "choices": [choice], **dict(response)}, **fields}


def completions(token_ids=(HELLO, WORLD, END), *, choice=(), response=(), **fields):
    """A one-shot completions request with one response."""
    return {"generate_responses": [oneshot(token_ids, choice=choice, response=response)["generate_response"]], **fields}


def error(message, *, param=None, type="BadRequestError", code=400):
    """Status and body of an error answer."""
    return code, {"error": {"message": message, "type": type, "param": param, "code": code}}


def encode(model, text):
    """Token IDs of `text` in the served model's tokenizer."""
    return model.tokenizer.encode(text)
