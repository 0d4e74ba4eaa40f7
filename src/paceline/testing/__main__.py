"""`python -m paceline.testing SEED [--trace]`: one seed of the simulation, seen again."""

import argparse

from paceline.testing.simulation import STEPS, LawBroken, simulate


def main() -> int:
    """Runs the seed and says how it went."""
    parser = argparse.ArgumentParser(prog="python -m paceline.testing", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--trace", action="store_true", help="print every step")
    asked = parser.parse_args()
    try:
        report = simulate(asked.seed, asked.steps, tell=print if asked.trace else None)
    except LawBroken as broken:
        print(broken)
        return 1
    print(f"seed {report.seed}: {report.steps} steps, {report.jobs} jobs, every law held, trace {report.trace}")
    for branch, count in sorted(report.hits.items()):
        print(f"{count:6} {branch}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
