"""A figure on a page, in the colours of the theme and with downloads, that changes in place: its zoom and hidden traces
stay when new readings come.

Streamlit's own `plotly_chart` makes a new figure whenever its data change. Here `Plotly.react` draws the new data into
the old figure, and `uirevision` keeps the reader's changes. The browser loads Plotly's library, 5 MB, once from this
server and nothing from any other. The camera of Plotly's bar makes a PNG in the browser; nothing is sent anywhere.
"""

from collections import Counter
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import plotly
from plotly.io.json import to_json_plotly
from streamlit.components import v2
from streamlit.components.v1 import declare_component

from ablations.report.figures.chart import Chart
from ablations.report.figures.plotly_chart import FIGURE_SETTINGS, NARROW, layout_on, on_screen
from ablations_dashboard.widgets.table import offer_download
from ablations_dashboard.widgets.theme import is_dark

COMPONENT_NAME = "ablations.plotly_figure"
LIBRARY = "plotly"
DRAW = """
// Streamlit serves its own scripts below the address that it has here, and the folder of the library too.
const server = document.querySelector('script[src*="static/js/"]').src.replace(/static\\/js\\/.*/, "");
const library = () => window.plotlyThere ??= new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = server + "component/LIBRARY_NAME/plotly.min.js";
  script.onload = () => resolve(window.Plotly);
  script.onerror = () => reject(new Error("Plotly's library did not come from " + script.src));
  document.head.appendChild(script);
});

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".ablations-figure");
  place.setAttribute("role", "figure");
  place.setAttribute("aria-label", data.alt);
  place.wanted = data;
  const isNarrow = () => place.clientWidth < NARROW_PX;
  const draw = () => library().then((Plotly) => {
    if (place.wanted !== data || !place.isConnected) return;
    const figure = JSON.parse(data.spec);
    place.drawnNarrow = isNarrow();
    const layout = place.drawnNarrow ? JSON.parse(data.narrow) : figure.layout;
    place.style.height = layout.height ? `${layout.height}px` : "";  // Plotly takes it from here when the width changes
    return Plotly.react(place, figure.data, layout, data.config);
  }).catch((error) => { place.textContent = "This figure cannot be drawn: " + error.message; });
  draw();
  const watch = new ResizeObserver(() => {
    if (place.clientWidth && place.drawnNarrow !== undefined && place.drawnNarrow !== isNarrow()) draw();
  });
  watch.observe(place);
  return () => {
    watch.disconnect();
    setTimeout(() => { if (!place.isConnected && window.Plotly) window.Plotly.purge(place); }, 1000);
  };
}
"""
NARROW_PX = 700
"""Width below which the narrow layout is drawn."""
PLACE = '<div class="ablations-figure" style="width: 100%"></div>'


@cache
def _component() -> Any:
    """Register the folder of the library, which is served, and the drawing script, once."""
    served = declare_component(LIBRARY, path=str(Path(plotly.__file__).parent / "package_data"))
    js = DRAW.replace("LIBRARY_NAME", served.name).replace("NARROW_PX", str(NARROW_PX))
    return v2.component(COMPONENT_NAME, html=PLACE, js=js, isolate_styles=False)


def show_figure(chart: Chart, *, name: str, view: str = "") -> None:
    """Draw a chart with its download. `name` names its file and must be unique among the page's figures. The reader's
    zoom is kept until `view` changes."""
    show_picture(chart, name=name, view=view)
    offer_download("Figure as HTML", partial(_as_html, chart), f"{name}.html")


def show_picture(chart: Chart, *, name: str, view: str = "") -> None:
    """Draw a chart without its download: one of many small ones. A figure already drawn with this `name` and `view` is
    updated."""
    key = f"{name} {view}"
    figure = on_screen(chart, is_dark=is_dark()).update_layout(uirevision=key)
    traces: Any = figure.data
    same_name: Counter[str] = Counter()
    for trace in traces:
        called = f"{trace.type} {trace.name} {trace.mode if 'mode' in trace else ''}"
        trace.uid = f"{called} {same_name[called]}"  # identifies a trace whatever its place
        same_name[called] += 1
    narrow = to_json_plotly(layout_on(replace(NARROW, is_dark=is_dark()), chart) | {"uirevision": key})
    picture = {"format": "png", "filename": name, "scale": 2}  # of twice the size on screen
    buttons = {"modeBarButtonsToRemove": ["lasso2d", "select2d"], "toImageButtonOptions": picture}
    config = FIGURE_SETTINGS | buttons
    data = {"spec": figure.to_json(), "narrow": narrow, "config": config, "alt": chart.alt}
    _component()(key=key, data=data)


def _as_html(chart: Chart) -> bytes:
    """The chart as a separate page that needs no network, always in light colours."""
    settings = {"displaylogo": False, "showSendToCloud": False}
    page = on_screen(chart).to_html(include_plotlyjs=True, full_html=True, config=settings, div_id="figure")
    return page.encode()
