"""The four things the service does: chat and completions, whole and chunk by chunk."""

from derender_api.services.chat import derender_chat, derender_chat_chunk, derender_chat_chunks
from derender_api.services.completion import (
    derender_completion,
    derender_completion_chunk,
    derender_completion_chunks,
)

__all__ = [
    "derender_chat",
    "derender_chat_chunk",
    "derender_chat_chunks",
    "derender_completion",
    "derender_completion_chunk",
    "derender_completion_chunks",
]
