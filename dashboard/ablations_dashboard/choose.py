"""What every page lets one choose: the sweep and its variants, kept in the URL."""

import streamlit as st

from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, read_sweep


def choose_sweep() -> StartedSweep:
    """The sweep named in the URL, or the one last started; without any, the page ends here."""
    home = find_home(None)
    names = home.sweep_names()
    if not names:
        st.title("Ablations")
        st.info(f"No sweep in `{home.path}`. `platform sweep sweeps/loo.yaml --home {home.path}` makes one.")
        st.stop()
    asked = st.query_params.get("sweep")
    name = st.sidebar.selectbox("Sweep", names, index=names.index(asked) if asked in names else 0)
    st.query_params["sweep"] = name
    st.sidebar.caption(f"Home folder `{home.path}`")
    try:
        return read_sweep(home, name)
    except AblationsError as error:
        st.error(str(error))
        st.stop()


def choose_variants(plan: Plan) -> list[str]:
    """The variants named in the URL, or all."""
    names = [variant.name for variant in plan.variants]
    asked = [name for name in st.query_params.get_all("variant") if name in names]
    chosen = st.sidebar.pills(
        "Variants", names, selection_mode="multi", default=asked or names, key=f"variants {plan.sweep}"
    )
    if set(chosen) in (set(), set(names)):
        st.query_params.pop("variant", None)
        return names
    st.query_params["variant"] = chosen
    return chosen
