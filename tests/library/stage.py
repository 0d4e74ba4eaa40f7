"""What the library tests share: agents, and a way to run one against a store of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from paceline import Context, Paceline, PermanentError, TransientError, agent

Act = Callable[[Paceline], Awaitable[None]]


def play(url: str, act: Act, **settings: Any) -> None:
    """Runs one act against a store, with a node, within twenty seconds."""

    async def within() -> None:
        async with asyncio.timeout(20), Paceline(url, agents=[], **settings) as pl:
            await act(pl)

    asyncio.run(within())


@agent(isolation="inline", max_concurrency=None)
async def double(ctx: Context, n: int) -> int:
    """Returns at once."""
    return 2 * n


@agent(isolation="inline", max_concurrency=None)
def halve(n: int) -> float:
    """A plain function, which runs in a thread."""
    return n / 2


@agent(isolation="inline", max_concurrency=None)
async def refuse(n: int) -> int:
    """Fails for good."""
    raise PermanentError(f"no {n}")


@agent(isolation="inline", max_concurrency=None)
async def fail_before(ctx: Context, attempt: int) -> int:
    """Fails in a way that a retry may cure until the given attempt."""
    if ctx.attempt < attempt:
        raise TransientError("not yet")
    return ctx.attempt


@agent(isolation="inline", max_concurrency=None)
async def forever(ctx: Context) -> None:
    """Ends only when somebody ends it."""
    ctx.log("waiting")
    await asyncio.Event().wait()
