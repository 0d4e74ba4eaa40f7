"""JSON at the door: what a job may be given and may give back, checked once, where it enters.

`encode` and `decode` move values to and from the text the store keeps, `decode_text_from_person` reads what somebody
typed, and a `Shape` turns plain JSON values into what an annotation asks for and back.
"""

from paceline.payloads.encoding import LARGEST_PAYLOAD, canonical, decode, encode
from paceline.payloads.handwritten import decode_text_from_person
from paceline.payloads.shapes import Shape, shape_of
from paceline.payloads.wording import complaint

__all__ = [
    "LARGEST_PAYLOAD",
    "Shape",
    "canonical",
    "complaint",
    "decode",
    "decode_text_from_person",
    "encode",
    "shape_of",
]
