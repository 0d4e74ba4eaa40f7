"""The contract itself: every verb of every room is said in words and driven by this suite."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from paceline.store.protocol import Store as Contract
from paceline.store.protocol import Tx
from paceline.store.sql import Store

SUITE = Path(__file__).parent
INSIDE = {"events.begin", "events.mark", "events.append", "events.flush", "lanes.forget"}
"""What the store and the rooms use among themselves, seen in what everything else does."""


def verbs(store: Store) -> Iterator[tuple[str, Callable[..., Any]]]:
    tx = store.execute(lambda tx: tx)
    assert isinstance(tx, Tx)
    for name, room in vars(tx).items():
        for verb, method in inspect.getmembers(room, inspect.ismethod):
            if not verb.startswith("_"):
                yield f"{name}.{verb}", method


def test_every_verb_is_driven_by_this_suite(store: Store) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in SUITE.glob("*.py"))
    said = set(re.findall(r"\btx\.(\w+\.\w+)", text))
    assert {name for name, _ in verbs(store)} - said == INSIDE


def test_every_verb_says_what_it_does(store: Store) -> None:
    for name, verb in verbs(store):
        assert verb.__doc__, name
        assert verb.__doc__.split("\n")[0].rstrip().endswith("."), name


def test_the_store_does_what_the_contract_promises(store: Store) -> None:
    contract: Contract = store
    promised = {name for name in vars(Contract) if not name.startswith("_")}
    assert promised <= set(dir(contract))
