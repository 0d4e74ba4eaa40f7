"""Typed models as plain values and back: dataclasses, msgspec structs, and pydantic models by what they can do.

Pydantic is recognised by its methods and never imported, so that it costs nothing where it is not used.
"""

from dataclasses import is_dataclass
from typing import Any

import msgspec

from paceline.payloads.wording import complaint, type_name


def is_model(kind: type) -> bool:
    """Whether values of this type have declared fields that JSON can carry."""
    return is_dataclass(kind) or issubclass(kind, msgspec.Struct) or is_pydantic(kind)


def is_pydantic(kind: object) -> bool:
    """Whether this is a pydantic model, or behaves like one."""
    return hasattr(kind, "model_dump") and hasattr(kind, "model_validate_json")


def builtins_of(value: object) -> object:
    """Models, dates, sets and the like as plain values. Floats stay as they are, so that a NaN can still be found."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_dump_pydantic)


def typed(plain: object, annotation: Any) -> object:
    """Plain values as the annotation wants them."""
    return msgspec.convert(plain, annotation, str_keys=True, dec_hook=_load_pydantic)


def check_annotation(annotation: Any) -> None:
    """Raises when no JSON value could be turned into the annotation's type."""
    msgspec.json.Decoder(annotation, dec_hook=_load_pydantic)


def _dump_pydantic(model: Any) -> object:
    if is_pydantic(type(model)):
        return model.model_dump(mode="json", by_alias=True, round_trip=True)
    raise TypeError(f"it holds a {type_name(type(model))}")


def _load_pydantic(kind: Any, plain: object) -> object:
    """Pydantic reads JSON itself, so that models with strict fields take dates and sets as they do anywhere else."""
    if kind is object:
        return plain
    if not is_pydantic(kind):
        raise TypeError(f"{type_name(kind)} cannot be made from JSON")
    try:
        return kind.model_validate_json(msgspec.json.encode(plain))
    except ValueError as error:
        raise ValueError(complaint(error)) from None
