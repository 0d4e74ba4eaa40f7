"""Hints as bytes of bounded length, in whatever form they travel."""

from collections.abc import Callable, Iterable

import msgspec

from paceline.bus.protocol import Hint, merged

MOST_IDS_SENT = 500


class Packing:
    """One form in which hints travel; a message in it has at most so many bytes."""

    def __init__(
        self, encode: Callable[[Iterable[Hint]], bytes], decode: Callable[[bytes], list[Hint]], most_bytes: int
    ) -> None:
        self.most_bytes = most_bytes
        self._encode = encode
        self._decode = decode

    def pack(self, hints: Iterable[Hint]) -> bytes:
        """One message; what would not fit in it becomes a hint without ids."""
        told = merged(hints, MOST_IDS_SENT)
        try:
            message = self._encode(told)
        except OverflowError:
            message = b""
        if message and len(message) <= self.most_bytes:
            return message
        return self._encode([Hint(hint.topic) for hint in told])

    def unpack(self, message: bytes) -> list[Hint] | None:
        """The hints in a message, None when it holds anything else."""
        try:
            return self._decode(message)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None


# A datagram is bytes; a notification of Postgres is text, and shorter than 8,000 bytes.
DATAGRAMS = Packing(msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[Hint]).decode, 32_768)
NOTIFICATIONS = Packing(msgspec.json.Encoder().encode, msgspec.json.Decoder(list[Hint]).decode, 7_999)
