"""Cuts the released text of a chunk at the tokens that some stage wants to see by ID."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from .events import Segment, Text, Token


def scan(token_ids: Sequence[int], texts: Sequence[str], marks: Mapping[int, str]) -> list[Segment]:
    """Segments of one chunk.

    `texts[i]` is what the detokenizer released for `token_ids[i]`; `marks` maps the wanted IDs to their spelling. Text
    that was held back before a marked token (an incomplete character) precedes it. Adjacent text is joined; no empty
    Text.
    """
    if marks.keys().isdisjoint(token_ids):
        text = "".join(texts)
        return [Text(text)] if text else []
    segments: list[Segment] = []
    start = 0
    for position in [place for place, token_id in enumerate(token_ids) if token_id in marks]:
        token_id = token_ids[position]
        before, marked = _split(texts[position], marks[token_id])
        plain = "".join(texts[start:position]) + before
        if plain:
            segments.append(Text(plain))
        segments.append(Token(token_id, marked))
        start = position + 1
    plain = "".join(texts[start:])
    if plain:
        segments.append(Text(plain))
    return segments


def _split(text: str, spelling: str) -> tuple[str, str]:
    """Held text released together with a marked token, and the token's own text."""
    if text == spelling or not text:
        return "", text
    if text.endswith(spelling):
        return text[: -len(spelling)], spelling
    stripped = spelling.strip()
    position = text.rfind(stripped) if stripped else -1
    return (text[:position], text[position:]) if position > 0 else ("", text)


def text_of(segments: Sequence[Segment]) -> str:
    """The plain text of segments, token spellings included."""
    return "".join(segment.text for segment in segments)


def hold_stop(segments: Sequence[Segment], held: str, stops: Container[int]) -> tuple[Sequence[Segment], str]:
    """(segments to read now, text held back): a special token that ends a chunk is the stop token unless more follows.

    `held` is what the last call held back. Only where the finish reason comes in a chunk of its own is there anything
    to drop: otherwise the stop token has no text.
    """
    if segments and held:
        segments, held = [Text(held), *segments], ""
    last = segments[-1] if segments else None
    if isinstance(last, Token) and last.token_id in stops:
        return segments[:-1], last.text
    return segments, held
