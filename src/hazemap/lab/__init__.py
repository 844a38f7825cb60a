"""Measuring methods (`compare`, `methods`) and auditing promises (`audit`); nothing that publishes a map imports it."""
