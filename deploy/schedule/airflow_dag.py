"""A DAG of Airflow (2.4 or newer): hazemap knows by itself what is due, so a run needs no date and may be retried."""

from datetime import datetime, timedelta, timezone

from airflow import DAG
from airflow.operators.bash import BashOperator

with DAG(
    "hazemap_schedule",
    schedule="@hourly",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 - Airflow runs on Python 3.10 too
    catchup=False,  # hazemap catches up, and pays for no period twice
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    # The last line of stdout, hazemap's JSON, goes to XCom. 3 and 6 (budget spent, already running) skip the task.
    BashOperator(
        task_id="release",
        bash_command="hazemap schedule run /etc/hazemap/release.toml --json",
        skip_on_exit_code=[3, 6],
        do_xcom_push=True,
    )
