"""The choice of the baseline, the variant that all others are compared with."""

import streamlit as st

from ablations.home.plan import Plan
from ablations_dashboard.selection.url import pick


def choose_baseline(plan: Plan) -> str:
    """Choose the variant that all others are compared with; the plan's reference by default."""
    names = [variant.name for variant in plan.variants]
    return pick("baseline", "Baseline", names, default=plan.reference, scope=plan.sweep, widget=st.sidebar.selectbox)
