"""The contrast of the texts on a page, computed from what the browser draws (WCAG 2.1, 1.4.3: 4.5 to 1)."""

import pytest
from dashboard.browser import served_in_browser
from fixtures_home import collapse, make_home, planned_run

LEAST = 4.5
DRAWN = """() => {
    const numbers = (css) => (css.match(/[\\d.]+/g) ?? []).map(Number);
    const parsed = (css) => { const [r, g, b, a = 1] = numbers(css); return {rgb: [r, g, b], alpha: a}; };
    const over = (one, below) => one.rgb.map((value, at) => one.alpha * value + (1 - one.alpha) * below[at]);
    const page = parsed(getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor).rgb;
    const behind = (element) => {
        const layers = [];
        for (let at = element; at instanceof HTMLElement; at = at.parentElement) {
            const found = parsed(getComputedStyle(at).backgroundColor);
            if (found.alpha) layers.unshift(found);
        }
        return layers.reduce((below, one) => over(one, below), page);
    };
    const opacity = (element) => {
        let found = 1;
        for (let at = element; at; at = at.parentElement) found *= Number(getComputedStyle(at).opacity);
        return found;
    };
    const texts = document.querySelectorAll('[data-testid=stMain] :is(p, li, h1, h2, h3, .main-svg text)');
    const isSeen = (one) => one.textContent.trim() && one.getBoundingClientRect().width
        && !one.closest('label:has(:disabled)')  // WCAG 2.1 leaves out what cannot be operated
        && !one.closest('[data-testid$=Slider]');  // whose numbers are clear until the pointer is on them
    return [...texts].filter(isSeen).map((one) => {
        const style = getComputedStyle(one), isDrawn = one instanceof SVGElement;
        const ink = parsed(isDrawn ? style.fill : style.color);
        ink.alpha *= opacity(one) * (isDrawn ? Number(style.fillOpacity) : 1);
        const back = behind(isDrawn ? one.closest('.ablations-figure') : one);
        return {text: one.textContent.slice(0, 60), ink: over(ink, back), back};
    });
}"""


def luminance(rgb):
    """Relative luminance, as WCAG 2.1 defines it."""
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in (part / 255 for part in rgb)]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def rgb_of(colour):
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    sweep = make_home(tmp_path_factory.mktemp("contrast"), seeds=(0, 1, 2))
    collapse(sweep, planned_run("loo-loss", 1).id, after=1500.0)
    yield from served_in_browser(sweep.home.path)


def test_the_formula_gives_the_known_contrasts():
    assert contrast((255, 255, 255), (0, 0, 0)) == pytest.approx(21)
    assert contrast(rgb_of("#767676"), (255, 255, 255)) == pytest.approx(
        4.54, abs=0.01
    )  # the greys of WCAG's tutorials
    assert contrast(rgb_of("#777777"), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def faint(page):
    """The texts on the page with too little contrast."""
    drawn = page.page.evaluate(DRAWN)
    assert len(drawn) > 8
    found = {one["text"]: round(contrast(one["ink"], one["back"]), 2) for one in drawn}
    return {text: value for text, value in found.items() if value < LEAST}


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize(("path", "figures"), [("compare", 2), ("run", 2), ("runs", 0)])
def test_captions_and_texts_of_figures_are_read_easily(browser, path, figures, is_dark):
    with browser.window(dark=is_dark) as page:
        page.open(path, sweep="loo", run=planned_run("loo-loss", 1).id)
        page.is_whole(figures=figures)
        assert faint(page) == {}


def test_an_open_page_turns_dark_and_light_with_the_system(browser):
    with browser.window() as page:
        page.open("compare", sweep="loo")
        page.is_whole(figures=2)
        text = "document.querySelector('.ablations-figure .main-svg text').style.fill"
        light = page.page.evaluate(text)
        for scheme, condition in (("dark", f"{text} !== '{light}'"), ("light", f"{text} === '{light}'")):
            page.page.emulate_media(color_scheme=scheme)
            page.page.wait_for_function(condition)
            page.settled()
            assert faint(page) == {}
        page.is_whole(figures=2)
