"""MLflow's page of an experiment's runs: its URL, and a view of it (columns and chart) that the experiment stores.

Without `workflowType` in the URL the page of an experiment opens on traces, for any kind of experiment. A stored view
is a tag of the experiment, and its key in the URL selects it.
"""

from typing import Any
from urllib.parse import urlencode

from ablations.tracking.descriptions import OF_A_VARIANT

MEAN_PASS_RATE, MEAN_COMPUTE = "eval/pass_rate", "eval/compute_gpu_hours"
"""Names of a variant's metrics, shared with its seeds, so that one chart shows both."""
VIEW_KEY = "ablations"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW_KEY}"
SHOWN_COLUMNS = (
    *("tags.`changes`", "metrics.`level`", "tags.`level_verdict`", "metrics.`A_lo`", "tags.`ceiling_verdict`"),
    *("metrics.`compute_ratio`", "tags.`compute_verdict`", "metrics.`cost_gpu_hours`"),
)
"""Columns in the order in which the page shows them; all others can be added there."""
SECTION = "eval"
"""MLflow's own section for metrics whose names begin like this."""


def _line_chart(metric: str, **settings: Any) -> dict[str, Any]:
    return {
        "uuid": metric,
        "type": "LINE",
        "metricSectionId": SECTION,
        "metricKey": metric,
        "selectedMetricKeys": [metric],
        "runsCountToCompare": 40,
        "isGenerated": True,
        "deleted": False,
    } | settings


VIEW = {
    "orderByKey": "metrics.`level`",
    "orderByAsc": False,
    "searchFilter": f"tags.kind = '{OF_A_VARIANT}'",
    "selectedColumns": list(SHOWN_COLUMNS),
    "columnOrder": list(SHOWN_COLUMNS),
    "compareRunSections": [
        {"uuid": SECTION, "name": SECTION, "display": True, "isReordered": False, "columns": 1, "cardHeight": 480}
    ],
    "compareRunCharts": [
        _line_chart(
            MEAN_PASS_RATE,
            displayName="mean pass rate against compute",
            xAxisKey="metric",
            selectedXAxisMetricKey=MEAN_COMPUTE,
            useGlobalXaxisKey=False,
            displayPoints=False,
            lineSmoothness=0,
        ),
        _line_chart(MEAN_COMPUTE, deleted=True),
    ],
}


def runs_page_url(server: str, experiment_id: str) -> str:
    """URL of the runs of an experiment on a server such as `http://127.0.0.1:5000`, in its view."""
    query = {"workflowType": "machine_learning", "viewStateShareKey": VIEW_KEY}
    return f"{server}/#/experiments/{experiment_id}/runs?{urlencode(query)}"
