"""Any chart on a screen, drawn by Plotly: wide or narrow, on a light or a dark page.

Both widths share their traces, so that a page switches between them by changing only the layout.
"""

import html
import math
from dataclasses import replace
from string import Formatter
from typing import Any

import numpy as np
from plotly.graph_objects import Figure
from plotly.io.json import to_json_plotly

from ablations.report.figures.axes import ticks
from ablations.report.figures.chart import (
    BAND_OPACITY,
    GREY,
    INK,
    Axis,
    Band,
    Bars,
    Chart,
    Mark,
    Panel,
    Series,
    elided,
)
from ablations.report.figures.colours import tint
from ablations.report.figures.layout import STRIP_GAP, PanelPlace, Sheet, arranged, num_slots

FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
FIGURE_SETTINGS = {"displaylogo": False, "responsive": True, "showSendToCloud": False}
"""Plotly's settings without the button that uploads a figure to its cloud."""
GRID, FRAME = "#eceff2", "#c5cad0"
LONGEST_TITLE = 36
LAST_NUMBER = 1.7
"""Room for the half of an axis's last number, in letter heights; Plotly leaves out a number that has no room."""
CLEAR = "rgba(0,0,0,0)"
WIDE = Sheet(
    width=930, font=12, width_of=lambda text: 6.8 * len(text), longest=24, left=58, foot=48, top=12, head=34, label=31,
    leader=20, slot=9, plot=1.0, row=1.0,
)  # fmt: skip
NARROW = replace(
    WIDE, width=370, font=10, width_of=lambda text: 5.7 * len(text), longest=20, left=46, foot=46, label=26, slot=4,
    plot=0.77,
)  # fmt: skip


def on_screen(chart: Chart, *, is_narrow: bool = False, is_dark: bool = False) -> Figure:
    """The chart as a figure of Plotly."""
    sheet = replace(NARROW if is_narrow else WIDE, is_dark=is_dark)
    traces = [
        {"xaxis": f"x{across}", "yaxis": f"y{number}", **_trace(mark, panel, chart, sheet)}
        for number, panel in _numbered(chart)
        for across, marks in ((number, panel.marks), (_strip_number(chart, number), panel.strip))
        for mark in marks
    ]
    return Figure(data=traces, layout={"template": "none", **layout_on(sheet, chart)})


def chart_script(chart: Chart, place: str) -> str:
    """JavaScript that draws the chart, light, in the element with this id; the page's own function `layOut` gets both
    layouts. Numbers are of single precision, which suffices for a screen.
    """
    figure = Figure(data=on_screen(chart).data, layout={"template": "none"})
    traces: Any = figure.data
    for trace in traces:
        for name in ("x", "y"):
            if isinstance(values := trace[name], np.ndarray) and values.dtype == np.float64:
                trace[name] = values.astype(np.float32)
    drawn = figure.to_dict()
    data, layout, settings, wide, narrow = (
        to_json_plotly(one)
        for one in (drawn["data"], drawn["layout"], FIGURE_SETTINGS, layout_on(WIDE, chart), layout_on(NARROW, chart))
    )
    return f"Plotly.newPlot('{place}', {data}, {layout}, {settings}).then(one => layOut(one, {wide}, {narrow}));\n"


def plain(text: str) -> str:
    """`text` escaped so that Plotly shows it literally, since its labels interpret some HTML, including links."""
    return html.escape(text, quote=False).replace("\n", "<br>")


def _in_hover(text: str) -> str:
    """`text` escaped for a hover template, in which `%{` begins a number."""
    return plain(text).replace("{", "&#123;")


def _hover(mark: Mark, unit: str) -> dict[str, Any]:
    """Plotly's template of a hover text; the name stands beside it if it is not within."""
    if not mark.hover:
        return {"hoverinfo": "skip"}
    template = ""
    for before, field, form, _ in Formatter().parse(mark.hover):
        template += _in_hover(before)
        if field in ("name", "unit"):
            template += _in_hover(mark.name if field == "name" else unit)
        elif field is not None:
            template += f"%{{{field}:{form}}}" if form else f"%{{{field}}}"
    aside = "" if "{name}" in mark.hover else _in_hover(mark.name)
    found: dict[str, Any] = {"hovertemplate": f"{template}<extra>{aside}</extra>"}
    return found | ({"text": [plain(text) for text in mark.texts]} if "{text}" in mark.hover else {})


def _trace(mark: Mark, panel: Panel, chart: Chart, sheet: Sheet) -> dict[str, Any]:
    found: dict[str, Any] = {"name": plain(mark.legend or mark.name), **_hover(mark, panel.x.unit)}
    if chart.legend:
        found |= {"legendgroup": mark.name, "showlegend": bool(mark.legend)}
    match mark:
        case Band():
            return found | {
                "type": "scatter", "mode": "lines", "x": np.concatenate([mark.x, mark.x[::-1]]), "fill": "toself",
                "y": np.round(np.concatenate([mark.high, mark.low[::-1]]), 5), "line": {"width": 0},
                "fillcolor": tint(sheet.ink(mark.colour), BAND_OPACITY),
            }  # fmt: skip
        case Bars():
            marker = {"color": list(map(sheet.ink, mark.colours)), "pattern": {"shape": "/" if mark.is_hatched else ""}}
            return found | {
                "type": "bar", "orientation": "h", "x": list(mark.lengths), "y": list(range(len(mark.lengths))),
                "base": list(mark.starts) or None, "customdata": [plain(text) for text in mark.labels],
                "texttemplate": "%{customdata}", "textposition": "outside" if mark.labels else "none", "marker": marker,
            }  # fmt: skip
        case Series():
            return found | _scatter(mark, sheet.ink(mark.colour))
    raise AssertionError(mark)


def _scatter(mark: Series, colour: str) -> dict[str, Any]:
    mode = "+".join(name for name, drawn in (("lines", mark.width), ("markers", mark.symbol)) if drawn)
    y = np.round(mark.y, 5) if isinstance(mark.y, np.ndarray) else mark.y
    found: dict[str, Any] = {"type": "scatter", "mode": mode, "x": mark.x, "y": y}
    found |= {} if mark.opacity == 1 else {"opacity": mark.opacity}
    if mark.width:
        found["line"] = {"color": colour, "width": mark.width}
        found["line"] |= {} if mark.dash == "solid" else {"dash": mark.dash}
        found["line"] |= {} if mark.steps == "linear" else {"shape": mark.steps}
    if mark.symbol:
        pairs = zip(*(np.broadcast_to(one, len(mark.x)) for one in (mark.symbol, mark.is_filled)), strict=True)
        names = [name if is_filled else f"{name}-open" for name, is_filled in pairs]
        found["marker"] = {"color": colour, "size": mark.size, "symbol": names if len(set(names)) > 1 else names[0]}
        found |= {"cliponaxis": False} if any(name.startswith("triangle") for name in names) else {}
    for name, ends, middle in (("error_x", mark.x_ends, mark.x), ("error_y", mark.y_ends, mark.y)):
        if ends is not None:
            found[name] = {"type": "data", "symmetric": False, "color": colour, "thickness": 1.4, "width": 3}
            found[name] |= {"array": np.subtract(ends[1], middle), "arrayminus": np.subtract(middle, ends[0])}
    return found


def layout_on(sheet: Sheet, chart: Chart) -> dict[str, Any]:
    """Plotly's layout of the chart on a sheet."""
    where = arranged(chart, sheet)
    first, last = (where.places[0].top, where.places[-1].bottom) if where.places else (0.0, 1.0)
    page = CLEAR if sheet.is_dark else "white"
    layout: dict[str, Any] = {
        "height": round(where.height), "paper_bgcolor": page, "plot_bgcolor": page,
        "font": {"family": FONT, "size": sheet.font, "color": sheet.ink(INK)}, "showlegend": bool(chart.legend),
        "hovermode": "x unified" if chart.is_read_at_x else "closest", "barmode": "overlay",
        "margin": {
            "l": where.left, "r": max(where.right, LAST_NUMBER * sheet.font), "t": first, "b": where.height - last,
        },
    }  # fmt: skip
    if chart.legend:
        edge = {"above": ("bottom", 1 + sheet.top / (last - first)), "below": ("top", -sheet.foot / (last - first))}
        anchor, y = edge[chart.legend]
        layout["legend"] = {"orientation": "h", "x": 0, "y": y, "yanchor": anchor, "traceorder": "normal"}
    shapes: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for (number, panel), place in zip(_numbered(chart), where.places, strict=True):
        down = [(last - edge) / (last - first) for edge in (place.bottom, place.top)]
        width = (place.right - place.left) * (sheet.width - where.left - where.right)
        x = _axis(panel.x, sheet, sheet.ticks_of(panel.x, width)) | {"anchor": f"y{number}", "tickangle": 0}
        x["domain"] = [place.left, place.strip - (STRIP_GAP if panel.strip else 0.0)]
        if chart.has_common_x and number:
            x["matches"] = "x"
        low, high = panel.x.range or (1.0, 100.0)
        if panel.x.is_log and not panel.x.has_round_ticks and high > 10 * low:
            x["dtick"] = "D2"
        y = _axis(panel.y, sheet, 4 if len(chart.panels) > 1 else 8) | {"anchor": f"x{number}", "domain": down}
        if panel.num_rows:
            named = (panel.y.ticks or ()) if place.has_names else ()
            y |= {"tickvals": [at for at, _ in named], "ticktext": [plain(sheet.short(name)) for _, name in named]}
            y |= {"automargin": False, "ticks": "", "ticklabelstandoff": 4, "showline": False, "fixedrange": True}
            y["showgrid"] = bool(panel.y.ticks)
        layout |= {f"xaxis{number}": x, f"yaxis{number}": y}
        if panel.strip:
            span = {"domain": [place.strip, place.right], "range": [-1, num_slots(panel)], "anchor": f"y{number}"}
            layout[f"xaxis{_strip_number(chart, number)}"] = span | {"visible": False, "fixedrange": True}
        shapes += [*_rules(panel, number, sheet), *_leaders(panel, place, number, sheet)]
        texts += _texts(panel, place, number, sheet, down[1])
        if panel.key:
            corner = {"xref": "paper", "x": 1, "xshift": where.right - 4, "xanchor": "right", "yref": "paper", "y": 0}
            texts.append(corner | {"yshift": -7, "yanchor": "top", "text": panel.key, "font": _small(sheet)})
    return layout | {"shapes": shapes, "annotations": [{"showarrow": False, **one} for one in texts]}


def _axis(axis: Axis, sheet: Sheet, most: int) -> dict[str, Any]:
    """An axis with at most so many numbers."""
    found: dict[str, Any] = {
        "type": "log" if axis.is_log else "linear", "automargin": True, "zeroline": False, "showline": True,
        "ticks": "outside", "ticklen": 4, "gridcolor": sheet.ink(GRID), "linecolor": sheet.ink(FRAME),
        "nticks": most, "title": {"text": plain(axis.title), "standoff": 6, "font": {"size": sheet.font}},
        "tickformat": ".0%" if axis.is_share else None,
    }  # fmt: skip
    if axis.range is not None:
        found["range"] = [math.log10(end) for end in axis.range] if axis.is_log else list(axis.range)
    elif axis.from_zero:
        found["rangemode"] = "tozero"
    named = axis.ticks
    if axis.has_round_ticks and axis.range is not None:
        places = ticks(*axis.range, most, log=axis.is_log)
        named = [(place, f"{place:g}".replace("-", "−")) for place in places]
    if named is not None:
        found |= {"tickvals": [at for at, _ in named], "ticktext": [plain(name) for _, name in named]}
    return found


def _rules(panel: Panel, number: str, sheet: Sheet) -> list[dict[str, Any]]:
    found = []
    for rule in panel.rules:
        line = {"color": sheet.ink(rule.colour), "width": 1 if rule.colour == GREY else 1.5, "dash": "dot"}
        upright = {"x0": rule.x, "x1": rule.x, "y0": 0, "y1": 1, "xref": f"x{number}", "yref": f"y{number} domain"}
        level = {"x0": 0, "x1": 1, "y0": rule.y, "y1": rule.y, "xref": f"x{number} domain", "yref": f"y{number}"}
        found.append({"type": "line", "layer": "below", "line": line, **(upright if rule.y is None else level)})
    return found


def _leaders(panel: Panel, place: PanelPlace, number: str, sheet: Sheet) -> list[dict[str, Any]]:
    return [
        {
            "type": "line", "xref": "paper", "xsizemode": "pixel", "xanchor": place.right, "x0": 2, "x1": sheet.leader,
            "yref": f"y{number}", "y0": label.y, "y1": height, "line": {"color": sheet.ink(label.colour), "width": 1},
        }
        for label, height in zip(panel.labels, place.labels, strict=True)
        if label.has_leader
    ]  # fmt: skip


def _texts(panel: Panel, place: PanelPlace, number: str, sheet: Sheet, top: float) -> list[dict[str, Any]]:
    """Labels, the title, the foots of rules, and captions."""
    found = []
    for label, height in zip(panel.labels, place.labels, strict=True):
        shift = (sheet.leader if label.has_leader else 0) + 4
        base = {"xref": "paper", "x": place.right, "xshift": shift, "xanchor": "left", "yref": f"y{number}"}
        base |= {"y": height, "yanchor": "middle"}
        name, colour = f"<b>{plain(sheet.short(label.name))}</b>", sheet.text_ink(label.colour)
        lines = [(name, colour)] if label.name else []
        lines += [(plain(label.text), sheet.ink(INK) if label.name else colour)] if label.text else []
        for up, (text, ink) in zip((1, -1) if len(lines) > 1 else (0,), lines, strict=True):
            found.append(base | {"text": text, "yshift": up * sheet.label / 4, "font": {"color": ink}})
    if panel.title:
        longest = LONGEST_TITLE if place.right - place.left < 0.9 else 2 * LONGEST_TITLE
        title = {"text": plain(elided(panel.title, longest)), "font": {"weight": 700}, "xref": "paper", "x": place.left}
        found.append(title | {"y": top, "yref": "paper", "xanchor": "left", "yanchor": "bottom"})
    for rule in panel.rules:
        if rule.text and rule.x is not None:
            # Plotly places shapes by value but annotations by logarithm.
            at, side = math.log10(rule.x) if panel.x.is_log else rule.x, "right" if rule.is_text_before else "left"
            corner = {"xref": f"x{number}", "x": at, "xanchor": side, "yref": f"y{number} domain", "y": 0}
            found.append(corner | {"yanchor": "bottom", "text": rule.text, "font": _small(sheet)})
    for caption in panel.captions:
        text = f"{'<br>'.join(map(plain, caption.lines))}<b>{plain(caption.bold)}</b>"
        corner = {"xref": f"x{number} domain", "x": 0, "xanchor": "left", "yref": f"y{number}", "y": caption.y}
        found.append(corner | {"yanchor": "bottom", "align": "left", "text": text})
    return found


def _small(sheet: Sheet) -> dict[str, Any]:
    return {"size": sheet.font - 1, "color": sheet.ink(GREY)}


def _numbered(chart: Chart) -> list[tuple[str, Panel]]:
    """Panels with the number in the names of their axes, which is empty for the first."""
    return [(str(place + 1) if place else "", panel) for place, panel in enumerate(chart.panels)]


def _strip_number(chart: Chart, number: str) -> int:
    return len(chart.panels) + int(number or 1)
