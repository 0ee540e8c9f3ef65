"""Codecs: how the pieces of each kind of tokenizer become text (the detokenizer's view of a tokenizer)."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from parsers.engine.detokenizer import REPLACEMENT, Ending

UTF8_LONGEST = 4
PIECE_CACHE = 65_536
ANCHOR = "a"
BYTE_PIECES = {f"<0x{byte:02X}>": byte for byte in range(256)}


def _byte_level_alphabet() -> dict[str, int]:
    """Character -> byte of the byte-level alphabet: printable bytes stand for themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


BYTE_LEVEL = _byte_level_alphabet()


def byte_level_bytes(piece: str) -> bytes:
    """The bytes a byte-level piece stands for; a piece with other characters (an added token) is literal text."""
    try:
        return bytes([BYTE_LEVEL[character] for character in piece])
    except KeyError:
        return piece.encode("utf-8", "surrogatepass")


class WholeTexts(dict[int, str | None]):
    """`Codec.whole_texts`, computed on first use; IDs outside the vocabulary are not remembered."""

    def __init__(self, piece_of: Callable[[int], str], whole_text: Callable[[str], str | None]) -> None:
        super().__init__()
        self._piece_of = piece_of
        self._whole_text = whole_text

    def __missing__(self, token_id: int) -> str | None:
        piece = self._piece_of(token_id)
        if not piece:
            return None
        self[token_id] = text = self._whole_text(piece)
        return text


class PieceTable(Protocol):
    """The part of a tokenizer that a codec reads."""

    def piece(self, token_id: int) -> str:
        """The vocabulary piece of an ID, "" where there is none."""


class ByteCodec:
    """Pieces are byte strings, decoded together as UTF-8: byte-level BPE and tekken."""

    def __init__(
        self,
        table: PieceTable,
        *,
        special_ids: Iterable[int],
        bytes_of: Callable[[str], bytes] = byte_level_bytes,
    ) -> None:
        self.piece = table.piece
        self.special_ids = frozenset(special_ids)
        self._bytes_of = lru_cache(maxsize=PIECE_CACHE)(bytes_of)
        self.whole_texts = WholeTexts(table.piece, self._whole_text)

    def text(self, pieces: Sequence[str]) -> str:
        return b"".join(map(self._bytes_of, pieces)).decode("utf-8", "replace")

    def is_settled(self, pieces: Sequence[str]) -> bool:
        return True

    def is_silent(self, piece: str) -> bool:
        return not self._bytes_of(piece)

    def ending(self, pieces: Sequence[str], before: Ending) -> Ending:
        tail = b""
        for piece in reversed(pieces):
            tail = self._bytes_of(piece) + tail
            if len(tail) >= UTF8_LONGEST:
                break
        return _ending_of_bytes(tail)

    def _whole_text(self, piece: str) -> str | None:
        try:
            text = self._bytes_of(piece).decode("utf-8")
        except UnicodeDecodeError:
            return None
        return text if text and not text.endswith(REPLACEMENT) else None


class SentencePieceCodec:
    """Pieces are text with a marker for the space, single bytes are `<0x..>`; a leading space may be stripped."""

    def __init__(
        self,
        table: PieceTable,
        *,
        special_ids: Iterable[int],
        join: Callable[[list[str]], str],
        reads_runs_piecewise: bool = False,
        hidden: frozenset[str] = frozenset(),
        openers: frozenset[str] = frozenset(),
    ) -> None:
        """`reads_runs_piecewise`: a run of byte pieces is decoded character by character, not all or nothing.

        `hidden` pieces are left out before anything is joined; a new text begins behind each of `openers`.
        """
        self.piece = table.piece
        self.special_ids = frozenset(special_ids)
        self._join = join
        self._hidden = hidden
        self._openers = openers
        self._ending_of_run = _ending_of_bytes if reads_runs_piecewise else _ending_of_run
        self._strips_first = join(["▁a"]) != " a"
        self.whole_texts = WholeTexts(table.piece, self._whole_text)

    def text(self, pieces: Sequence[str]) -> str:
        return self._join([piece for piece in pieces if piece not in self._hidden] if self._hidden else list(pieces))

    def is_settled(self, pieces: Sequence[str]) -> bool:
        if not self._strips_first:
            return True
        return bool(self.text(pieces)) and self._openers.isdisjoint(pieces)

    def is_silent(self, piece: str) -> bool:
        return not piece or piece in self._hidden

    def ending(self, pieces: Sequence[str], before: Ending) -> Ending:
        last = next((piece for piece in reversed(pieces) if piece not in self._hidden), "")
        if last not in BYTE_PIECES:
            return Ending.OPEN if last.endswith(REPLACEMENT) else Ending.CLOSED
        if before is Ending.STUCK:
            return Ending.STUCK
        run = bytearray()
        for piece in reversed(pieces):
            if piece in BYTE_PIECES:
                run.append(BYTE_PIECES[piece])
            elif piece not in self._hidden:
                break
        run.reverse()
        return self._ending_of_run(bytes(run))

    def _whole_text(self, piece: str) -> str | None:
        if piece in BYTE_PIECES or piece in self._openers:
            return None
        joined = self.text([ANCHOR, piece])
        text = joined.removeprefix(ANCHOR)
        return text if text and text != joined and not text.endswith(REPLACEMENT) else None


def _ending_of_bytes(content: bytes) -> Ending:
    return Ending.OPEN if content[-UTF8_LONGEST:].decode("utf-8", "replace").endswith(REPLACEMENT) else Ending.CLOSED


def _ending_of_run(run: bytes) -> Ending:
    """A run of byte pieces is text only if all of it is valid UTF-8 (otherwise U+FFFD, one for each byte)."""
    try:
        text = run.decode("utf-8")
    except UnicodeDecodeError as error:
        is_incomplete = error.reason == "unexpected end of data"
        return Ending.OPEN if is_incomplete else Ending.STUCK
    return Ending.OPEN if text.endswith(REPLACEMENT) else Ending.CLOSED


class AnyCodec:
    """A tokenizer of which only the joining of pieces is known; every token is decoded in its window."""

    def __init__(self, table: PieceTable, *, special_ids: Iterable[int], join: Callable[[list[str]], str]) -> None:
        self.piece = table.piece
        self.special_ids = frozenset(special_ids)
        self._join = join
        self.whole_texts = WholeTexts(table.piece, lambda piece: None)

    def text(self, pieces: Sequence[str]) -> str:
        return self._join(list(pieces)) if pieces else ""

    def is_settled(self, pieces: Sequence[str]) -> bool:
        return False

    def is_silent(self, piece: str) -> bool:
        return not piece

    def ending(self, pieces: Sequence[str], before: Ending) -> Ending:
        return Ending.UNKNOWN
