"""The sandbox process: reads requests from its standard input, renders, writes answers (see sandbox.py).

Ends with its input, that is with the process that started it. Memory is limited; a template that needs more gets an
error or, where even that cannot be built, ends the process.
"""

import json
import resource
import sys
from typing import Any, BinaryIO

from derender_api.render.sandbox import HEADER
from derender_api.tokenization.conversation import render_conversation

MEMORY = 1024 * 1024 * 1024
TOO_LARGE = "The chat template of the request was stopped: it needed too much memory or gave too long a text."


def main() -> None:
    """Serve until the input ends."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    render_conversation(messages=[{"role": "user", "content": ""}], chat_template="", variables={})
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _send(target, {})
    while header := source.read(HEADER):
        request = json.loads(source.read(int.from_bytes(header, "big")))
        _send(target, _answer(request))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    longest = request.pop("longest")
    try:
        text = render_conversation(**request)
        return {"text": text} if len(text) <= longest else {"error": TOO_LARGE}
    except (MemoryError, OverflowError):
        return {"error": TOO_LARGE}
    except RecursionError:
        return {"error": "The chat template of the request is nested too deeply."}
    except Exception as error:
        return {"error": str(error) or type(error).__name__}


def _send(target: BinaryIO, answer: dict[str, Any]) -> None:
    content = json.dumps(answer).encode()
    target.write(len(content).to_bytes(HEADER, "big") + content)
    target.flush()


if __name__ == "__main__":
    main()
