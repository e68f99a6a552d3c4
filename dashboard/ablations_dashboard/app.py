"""What Streamlit runs: title, navigation, and the chosen page."""

import streamlit as st

from ablations_dashboard.views import forecast, sweep

st.set_page_config(page_title="Ablations", layout="wide")
st.navigation(
    [
        st.Page(sweep.show, title="Sweep", url_path="sweep", default=True),
        st.Page(forecast.show, title="Forecast", url_path="forecast"),
    ]
).run()
