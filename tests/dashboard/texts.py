"""The texts that a page draws, where each lies, and which of them cover another, are cut off or leave the page.

    with browser.window(width=400) as page:
        page.open("compare", sweep="loo")
        assert crowded(page) == []

Measured in the browser: every line of text of the document, every value of a field, every text of a figure, turned ones
too. A text in a box that scrolls counts as far as the box shows it.
"""

from dataclasses import dataclass
from itertools import combinations, pairwise

from dashboard.browser import Window

CLOSE_PX = 2.0
"""Boxes hold the air above and below the letters; this much of it may be shared."""
TEXTS = """() => {
    const found = [], numberOf = new Map();
    const number = (element) => numberOf.get(element) ?? (numberOf.set(element, numberOf.size), numberOf.size - 1);
    const sidebar = document.querySelector('[data-testid=stSidebar]');
    const isAway = sidebar?.getBoundingClientRect().right <= 0;  // it waits beside the page until it is opened
    const isSeen = (element) => element.checkVisibility({visibilityProperty: true, opacityProperty: true})
        && !(isAway && sidebar.contains(element));
    const isPage = (element) =>
        element.matches('html, body, [data-testid=stMain], [data-testid=stSidebar], [data-testid=stSidebarContent]');
    const add = (element, text, {left, top, right, bottom}) => {
        const shown = {left, top, right, bottom};
        let isCut = false;
        for (let at = element; at && !isPage(at); at = at.parentElement) {
            const {display, overflowX, overflowY} = getComputedStyle(at), box = at.getBoundingClientRect();
            for (const [from, to, overflow] of [['left', 'right', overflowX], ['top', 'bottom', overflowY]]) {
                if (overflow === 'visible' || display === 'inline') continue;
                const lost = Math.max(box[from] - shown[from], shown[to] - box[to]);
                if (lost > LOST_PX && !/auto|scroll/.test(overflow)) isCut = true;
                shown[from] = Math.max(shown[from], box[from]);
                shown[to] = Math.min(shown[to], box[to]);
            }
        }
        if (shown.right - shown.left < 2 || shown.bottom - shown.top < 2) return;
        const {left: l, top: t, right: r, bottom: b} = shown;
        found.push({text, owner: number(element), isCut, corners: [[l, t], [r, t], [r, b], [l, b]]});
    };
    const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (nodes.nextNode()) {
        const node = nodes.currentNode, element = node.parentElement, range = document.createRange();
        if (!node.data.trim() || !isSeen(element) || element.closest('svg, canvas, script, style, noscript')) continue;
        range.selectNodeContents(node);
        for (const box of range.getClientRects()) add(element, node.data.trim(), box);
    }
    for (const field of document.querySelectorAll('input:not([type=range], [type=checkbox], [type=radio]), textarea')) {
        const said = field.value || field.placeholder;
        if (said && isSeen(field)) add(field, said, field.getBoundingClientRect());
    }
    for (const element of document.querySelectorAll('svg text')) {
        if (!element.textContent.trim() || !isSeen(element)) continue;
        const frame = (element.closest('.svg-container') ?? element.ownerSVGElement).getBoundingClientRect();
        const clip = /#([^"')]+)/.exec(element.closest('[clip-path]')?.getAttribute('clip-path') ?? '');
        const hole = clip && document.getElementById(clip[1])?.querySelector('rect')?.getBBox();
        const lines = element.querySelectorAll('tspan.line');
        for (const line of lines.length ? lines : [element]) {
            const box = line.getBBox(), matrix = element.getScreenCTM();
            if (box.width < 1) continue;
            const [l, t, r, b] = [box.x, box.y, box.x + box.width, box.y + box.height];
            const corners = [[l, t], [r, t], [r, b], [l, b]].map(([x, y]) => {
                const point = new DOMPoint(x, y).matrixTransform(matrix); return [point.x, point.y]; });
            const lost = Math.max(...corners.map(([x, y]) =>
                Math.max(frame.left - x, x - frame.right, frame.top - y, y - frame.bottom)));
            const isCut = lost > LOST_PX || Boolean(hole && hole.width && box.width > hole.width + LOST_PX);
            found.push({text: line.textContent, owner: number(element), isCut, corners});
        }
    }
    const main = document.querySelector('[data-testid=stMain]') ?? document.body;
    const hidden = Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
    return {texts: found, width: innerWidth, hidden};
}""".replace("LOST_PX", "1.5")


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A line of text: `Drawn(text="A 0.61", owner=7, is_cut=False, corners=((10, 5), (52, 5), (52, 19), (10, 19)))`."""

    text: str
    owner: int
    """The element that it belongs to."""
    is_cut: bool
    """True if the box around it hides a part."""
    corners: tuple[tuple[float, float], ...]
    """In order around it, in pixels of the window."""


def crowded(page: Window) -> list[str]:
    """What is wrong with the places of texts: pairs that overlap, texts cut off or beside the page, a page that scrolls
    sideways."""
    measured = page.page.evaluate(TEXTS)
    texts = [
        Drawn(text=one["text"], owner=one["owner"], is_cut=one["isCut"], corners=tuple(map(tuple, one["corners"])))
        for one in measured["texts"]
    ]
    width = measured["width"]
    found = [f"{one.text!r} covers {other.text!r} by {by:.0f} px" for one, other, by in overlaps(texts)]
    found += [f"{one.text!r} is cut off" for one in texts if one.is_cut]
    found += [f"{one.text!r} is beside the page" for one in texts if is_beside(one, width)]
    if measured["hidden"] > 0:
        found.append(f"the page is {width + measured['hidden']} px wide in a window of {width} px")
    return found


def is_beside(text: Drawn, width: float) -> bool:
    """True if a part of the text is left or right of the window."""
    return any(not -1 <= x <= width + 1 for x, _ in text.corners)


def overlaps(texts: list[Drawn]) -> list[tuple[Drawn, Drawn, float]]:
    """Pairs of texts that share more than `CLOSE_PX` in every direction, and how much they share."""
    pairs = ((one, other, shared(one, other)) for one, other in combinations(texts, 2) if one.owner != other.owner)
    return [pair for pair in pairs if pair[2] > CLOSE_PX]


def shared(one: Drawn, other: Drawn) -> float:
    """Pixels by which one of two boxes, turned or not, would have to be moved to be clear of the other; 0 or less if it
    is (the theorem of the separating axis)."""
    least = float("inf")
    for corners in (one.corners, other.corners):
        for (x, y), (next_x, next_y) in pairwise(corners[:3]):
            length = ((next_x - x) ** 2 + (next_y - y) ** 2) ** 0.5
            along = ((next_x - x) / length, (next_y - y) / length)
            mine, yours = ([px * along[0] + py * along[1] for px, py in box] for box in (one.corners, other.corners))
            least = min(least, min(max(mine), max(yours)) - max(min(mine), min(yours)))
            if least <= 0:
                return least
    return least
