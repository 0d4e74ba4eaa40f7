"""A script without asyncio, and a lock that holds over all nodes of a store.

    python examples/deploy.py

The agents are plain functions and run in threads. Whatever the order, two deployments never overlap.
"""

import tempfile
import threading
from pathlib import Path

from paceline import Context, Paceline, agent

SITE = threading.Lock()
"""Only here to show that Paceline's lock holds: it is never found taken."""


@agent(isolation="inline", max_concurrency=4)
def build(version: str) -> str:
    """Builds may run beside each other."""
    return f"site-{version}.tar"


@agent(isolation="inline", max_concurrency=None, needs={"lock:site": 1})
def deploy(ctx: Context, version: str) -> str:
    """One at a time: each job holds the lock from its start to its end."""
    if not SITE.acquire(blocking=False):
        raise RuntimeError("two deployments at once")
    try:
        ctx.progress(0.5, f"switching to {version}")
        return f"{version} is live"
    finally:
        SITE.release()


def main() -> None:
    """Each deployment waits for its own build, and for the lock."""
    versions = ("1.0", "1.1", "1.2")
    with tempfile.TemporaryDirectory() as folder, Paceline.sync(f"sqlite:///{Path(folder) / 'work.db'}") as pl:
        builds = pl.submit_many(build, versions)
        deployments = [pl.submit(deploy, version, after=[job]) for version, job in zip(versions, builds, strict=True)]
        for line in pl.results(deployments, timeout=10):
            print(line)


if __name__ == "__main__":
    main()
