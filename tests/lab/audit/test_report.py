"""What an audit says in the end. Nothing here is by chance."""

import pytest

from hazemap.cli.audit import _end
from hazemap.errors import HazemapError
from hazemap.lab.audit.report import AuditReport, markdown, verdict


def report(published, silent=()):
    return AuditReport((), 0.95, 12, 1.0, None, published, silent)


def test_a_build_that_refuses_everything_is_not_called_sound():
    nothing = report(0, ("flat:5, one row, curator, ε = 1",))
    assert "nothing could be audited" in verdict(nothing) and "nothing else is broken" not in verdict(nothing)
    with pytest.raises(HazemapError, match="nothing could be audited"):
        _end([nothing])
    _end([report(12)])


def test_settings_that_released_nothing_are_listed():
    page = markdown(report(6, ("top:10, rows:3, curator, ε = 1",)))
    assert "nothing is known of it" in page and "top:10, rows:3" in page
