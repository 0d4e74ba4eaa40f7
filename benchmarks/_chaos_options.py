"""The command line of the rig."""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from _chaos_controls import CONTROLS
from _chaos_links import why_no_namespaces
from _postgres import OWN, add_store


def options_of(about: str, arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for, or an error that says why it cannot be."""
    made = argparse.ArgumentParser(description=about.partition("\n")[0])
    add_store(made)
    made.add_argument("--kills", type=int, default=40)
    made.add_argument("--freezes", type=int, default=8, help="each 0.1 to 2 times the lease of 2 s")
    made.add_argument("--restarts", type=int, default=0, help="of the Postgres server; every other one is a crash")
    made.add_argument("--terminations", type=int, default=0, help="of Postgres sessions, in their commits if possible")
    made.add_argument("--cuts", type=int, default=0, help="of links to Postgres; each as long as a freeze")
    made.add_argument("--links", choices=("namespaces", "proxy"), help="how links are cut (default: what is possible)")
    made.add_argument("--jobs", type=int, default=0, help="go on until there are so many")
    made.add_argument(
        "--seconds", type=float,
        help="about how long faults go on (default: 0.4 per kill or termination, 1.2 per freeze, 2 per restart or cut)",
    )  # fmt: skip
    made.add_argument("--seed", type=int, default=random.randrange(10**6))
    made.add_argument("--pace", type=float, default=0.008, help="mean pause of the submitter")
    made.add_argument("--patience", type=float, default=60.0, help="longest drain")
    made.add_argument("--control", nargs="*", choices=list(CONTROLS), help="known-bad variants; without a name all")
    made.add_argument("--keep", type=Path, help="a folder that gets the database and the witnesses")
    options = made.parse_args(arguments)
    if options.seconds is None:
        quick, long = options.kills + options.terminations, options.restarts + options.cuts
        options.seconds = 0.4 * quick + 1.2 * options.freezes + 2 * long
    _check(made, options)
    if options.control == []:
        options.control = [name for name in CONTROLS if options.store != "sqlite" or name != "guards"]
    return options


def _check(made: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuses what the store cannot be put through, and says how links will be cut."""
    if options.store == "sqlite" and (options.restarts or options.terminations or options.cuts):
        made.error("a SQLite file has no server: --restarts, --terminations and --cuts need --store postgres")
    if options.store != OWN and options.restarts:
        made.error("--restarts needs a server of the rig's own: --store postgres")
    if options.store == "sqlite" and "guards" in (options.control or []):
        made.error("a SQLite file has one writer at a time and no guards: --control guards needs --store postgres")
    if options.cuts and options.links != "proxy":
        why = "the server is not the rig's own" if options.store != OWN else why_no_namespaces()
        if why and options.links:
            made.error(f"no network namespaces: {why}")
        if why:
            print(f"no network namespaces ({why}): links are cut by proxies", file=sys.stderr)
        options.links = "proxy" if why else "namespaces"
