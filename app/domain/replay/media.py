"""Images, videos and audio of a request that is sent again.

What came along in the request goes along. An address would be fetched by the target, and a path
read on its disk: whoever wrote the recorded request would choose what. Something harmless and
small takes their place, so that the request still goes the way of a request with media.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

FIELDS = ("image_data", "video_data", "audio_data")
# 56 × 56 grey pixels: two patches of 28, the least that common vision models take.
GREY_IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAADgAAAA4CAAAAACN7WTCAAAAJElEQVR42u3LMQ0AAAwDoEqv"
    "9FpYdsNP+hRRFEVRFEVRFMWbAclXIFtsqkldAAAAAElFTkSuQmCC"
)
_SAMPLES = b"\x80" * 800  # a tenth of a second of silence: 8 kHz, 8 bits
_WAV_HEADER = (
    b"RIFF\x44\x03\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0"
    b"\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x20\x03\0\0"
)
SILENCE = "data:audio/wav;base64," + b64encode(_WAV_HEADER + _SAMPLES).decode()
_PLACEHOLDERS = {"image_data": GREY_IMAGE, "audio_data": SILENCE}
_WEB = ("http://", "https://")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-=\s]{16,}")
_LOOKED_AT = 4096
_LONGEST_SCHEME = 20
# How base64 of a medium begins: PNG, JPEG, GIF, RIFF (WebP, WAV, AVI), BMP, TIFF, what MP4, AVIF
# and HEIC begin with, JPEG XL, Matroska, Ogg, FLAC, MP3. All else may be a path.
_BEGINS = (
    "iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "Qk0", "Qk1", "Qk2", "Qk3", "SUkqA", "TU0AK", "AAAA",
    "/woA", "GkXfo", "T2dnUw", "ZkxhQw", "SUQz", "//uQ", "//NE",
)  # fmt: skip


class Media:
    """The media of one request as they are sent. *told* says what was done to them.

    *unfit* says why the request cannot be sent: there is no harmless small video.
    """

    def __init__(self, *, addresses_allowed: bool) -> None:
        self._addresses_allowed = addresses_allowed
        self.told: dict[str, None] = {}
        self.unfit: str | None = None

    def of(self, name: str, value: Any, depth: int = 0) -> Any:  # noqa: ANN401  (JSON)
        """What goes into the field *name*, which has one medium, a list, or a list of lists."""
        if isinstance(value, list) and depth < 2:
            return [self.of(name, one, depth + 1) for one in value]
        if value is None:
            return None
        plain = value.get("url") if isinstance(value, Mapping) else value
        if plain is not value and isinstance(plain, str):
            self._tell(f"{name}: an object became a plain URL")
        return self._one(name, plain)

    def messages(self, messages: Iterable[Any]) -> list[Any]:
        """Messages of a chat, in whose parts media stand as ``image_url``, ``video_url``, …"""
        return [self._message(one) for one in messages]

    def _message(self, message: Any) -> Any:  # noqa: ANN401
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
            return message
        return {**message, "content": [self._part(part) for part in message["content"]]}

    def _part(self, part: Any) -> Any:  # noqa: ANN401
        if not isinstance(part, Mapping):
            return part
        made = dict(part)
        for kind in ("image", "video", "audio"):
            for key in (f"{kind}_url", f"input_{kind}", kind):
                if key in made:
                    made[key] = self._of_part(f"{kind}_data", made[key])
        return made

    def _of_part(self, name: str, value: Any) -> Any:  # noqa: ANN401
        """What stands in a part: a table with the medium under one name or the other, or itself."""
        if not isinstance(value, Mapping):
            return self._one(name, value)
        key = "data" if "data" in value and "url" not in value else "url"
        return {**value, key: self._one(name, value.get(key))}

    def _one(self, name: str, value: object) -> str | None:
        if isinstance(value, str):
            if goes_along(value):
                return value
            if value.lower().startswith(_WEB):
                if self._addresses_allowed:
                    return value
                return self._placeholder(name, "an address")
            if "://" in value[:_LONGEST_SCHEME] and not value.lower().startswith("file:"):
                return self._placeholder(name, "an address of another kind")
            return self._placeholder(name, "a file of the server that recorded it")
        return self._placeholder(name, "an object that cannot be sent")

    def _placeholder(self, name: str, was: str) -> str | None:
        found = _PLACEHOLDERS.get(name)
        if found is None:
            self.unfit = f"its video is {was}, and nothing small can take its place"
        self._tell(f"{name}: {was} gave way to a placeholder")
        return found

    def _tell(self, says: str) -> None:
        self.told[says] = None


def goes_along(text: str) -> bool:
    """Whether *text* is the medium itself: a ``data:`` URL or base64, and no path or address."""
    if text.lower().startswith("data:"):
        return True
    if not text.startswith(_BEGINS):
        return False
    return _BASE64.fullmatch(text[:_LOOKED_AT]) is not None
