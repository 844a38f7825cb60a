"""What is published: one file with numbers, error bars, statement and transcript, and the questions it answers."""

from hazemap.releases.centres import Centres
from hazemap.releases.questions import Estimate
from hazemap.releases.release import Release
from hazemap.releases.statistics import Statistics

__all__ = ["Centres", "Estimate", "Release", "Statistics"]
