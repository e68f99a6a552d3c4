"""Curves as words: worked out by hand."""

from ablations.terminal.sparkline import means_along, sparkline


def test_bars_stand_for_eighths_of_the_way_from_the_lowest_to_the_highest():
    eighths = [0.2 + 0.8 * (place + 0.5) / 8 for place in range(8)]
    assert sparkline(eighths, low=0.2, high=1.0) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.2, 1.0], low=0.2, high=1.0) == "▁█"


def test_what_is_not_known_is_blank_and_a_flat_curve_stands_in_the_middle():
    assert sparkline([None, 0.0, None, 1.0, None], low=0.0, high=1.0) == " ▁ █"
    assert sparkline([0.5, 0.5], low=0.5, high=0.5) == "▅▅"


def test_each_twelfth_of_the_compute_has_the_mean_of_what_was_read_in_it():
    # Twelfths of 24 are 2 long: 0 and 1 fall into the first, 2 into the second, 24 itself into the last.
    points = [(0.0, 0.1), (1.0, 0.3), (2.0, 0.5), (23.0, 0.6), (24.0, 0.8)]
    found = means_along(points, 24.0)
    assert (found[0], found[1], found[11]) == (0.2, 0.5, 0.7)
    assert found[2:11] == [None] * 9
