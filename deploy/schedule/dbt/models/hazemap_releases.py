"""A Python model of dbt (dbt-duckdb): what a schedule has released. Building it twice releases nothing twice.

`dbt run --vars "{release: /etc/hazemap/release.toml}"`; let it depend on the model that writes the source.
"""


def model(dbt, session):  # noqa: ARG001 - dbt calls it so
    """One row for each period that was released by this build or before, with its file and its charge."""
    import pandas as pd  # noqa: PLC0415 - dbt takes what stands outside of the model apart

    import hazemap  # noqa: PLC0415 - as above

    dbt.config(materialized="table")
    spec = hazemap.ScheduleSpec.read(dbt.config.get("release"))
    done = hazemap.run_schedule(spec)
    rows = [(each.period.name, each.state, each.charge, each.file) for each in done.periods]
    return pd.DataFrame(rows, columns=["period", "state", "charge", "file"])
