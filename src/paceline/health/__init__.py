"""What may be wrong with this host, the settings and the store: one verdict a question, each with what to do."""

from paceline.health.examination import examine
from paceline.health.settings import Origin, origins
from paceline.health.verdicts import Grade, Verdict

__all__ = ["Grade", "Origin", "Verdict", "examine", "origins"]
