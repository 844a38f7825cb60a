"""What is published: one file with numbers, error bars, statement and transcript, and the questions it answers."""

from hazemap.releases.estimates import Estimate
from hazemap.releases.k_median_centres import Centres
from hazemap.releases.map_release import Release
from hazemap.releases.statistics_release import Statistics

__all__ = ["Centres", "Estimate", "Release", "Statistics"]
