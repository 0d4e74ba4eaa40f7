"""Retries and keys: money moves once, although the code runs twice and the order comes in twice.

python examples/payments.py
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from paceline import Conflict, Context, Paceline, TransientError, agent


@dataclass
class Order:
    """What somebody bought."""

    number: int
    cents: int


class Bank:
    """Stands for a service that honours idempotency keys, with a bad line to it."""

    def __init__(self) -> None:
        self.booked: dict[str, int] = {}

    def charge(self, cents: int, key: str) -> None:
        """Books once per key; the first answer is lost on its way back."""
        first = key not in self.booked
        self.booked.setdefault(key, cents)
        if first:
            raise TransientError("booked, but the answer was lost", retry_after=0.05)


BANK = Bank()


@agent(isolation="inline", retries=3)
async def pay(ctx: Context, order: Order) -> str:
    """Charges an order; the key is the same in every try of this job."""
    ctx.log(f"try {ctx.attempt}")
    BANK.charge(order.cents, key=ctx.idempotency_key)
    return f"order {order.number} paid in try {ctx.attempt}"


async def main() -> None:
    """The same order twice is one job; another amount under its key is refused."""
    with tempfile.TemporaryDirectory() as folder:
        async with Paceline(f"sqlite:///{Path(folder) / 'work.db'}") as pl:
            job = await pl.submit(pay, Order(7, 1999), key="order-7")
            again = await pl.submit(pay, Order(7, 1999), key="order-7")
            try:
                await pl.submit(pay, Order(7, 2999), key="order-7")
            except Conflict as error:
                print(f"refused, {error.code}: {error.what}")
            print(await job.result(timeout=10))
            print(f"one job: {job == again}, booked: {list(BANK.booked.values())}")


if __name__ == "__main__":
    asyncio.run(main())
