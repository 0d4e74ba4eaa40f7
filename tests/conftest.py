"""What holds for every test: properties ignore the clock, and a public run tries the same examples each time."""

import os

from hypothesis import settings

settings.register_profile(
    "paceline",
    deadline=None,
    max_examples=100,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("paceline")
