"""Tools for tests of programs that use Paceline, and of Paceline itself."""

from paceline.testing.clock import ManualClock
from paceline.testing.simulation import LawBroken, Report, simulate

__all__ = ["LawBroken", "ManualClock", "Report", "simulate"]
