"""Dates and times of day: the same value in its usual forms, and texts that are neither."""

import pytest

from scalerl.verifiers.mathematics.dates import date_of, is_time_of_day, times_of_day


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2022-12-26", "2022-12-26"),
        ("2022/12/26", "2022-12-26"),
        ("26/12/2022", "2022-12-26"),
        ("December 26th, 2022", "2022-12-26"),
        ("26 of Dec. 2022", "2022-12-26"),
        ("9 May", "-5-9"),
        ("July 1776", "1776-7-"),
        ("1/2/2003", "1/2/2003"),  # two meanings
        ("2022-13-26", ""),
        ("2022-12-32", ""),
        ("1984", ""),
        ("May", ""),
        ("10-12", ""),
        ("3 apples", ""),
    ],
)
def test_a_date_has_one_form(text, date):
    assert date_of(text) == date


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("3:15", {195, 915}),
        ("15:15", {915}),
        ("3:15 p.m.", {915}),
        ("0:30", {30}),
        ("12:30 AM", {30}),
        ("12:30 PM", {750}),
        ("12:30", {30, 750}),
        ("3.15 pm", {915}),
        ("5", {300, 1020}),
        ("5 in the evening", {1020}),
        ("noon", {720}),
        ("15", set()),
        ("25:10", set()),
        ("3:61", set()),
        ("3.15", set()),
    ],
)
def test_a_time_of_day_is_the_minutes_that_it_can_mean(text, minutes):
    assert times_of_day(text) == minutes


def test_a_ratio_and_a_number_may_be_something_else_than_a_time():
    assert [is_time_of_day(text) for text in ("3:05", "3 pm", "noon", "3:15", "3")] == [True, True, True, False, False]
