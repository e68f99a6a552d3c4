"""Dates and times of day, one value for all usual forms.

date_of("4th of July, 1776")  ->  "1776-7-4"        times_of_day("3:15")     ->  {195, 915}, minutes since midnight
date_of("9 May")              ->  "-5-9"            times_of_day("3:15 pm")  ->  {915}
"""

import re

_TEXT_OF_MONTHS = "january february march april may june july august september october november december"
_MONTHS = _TEXT_OF_MONTHS.split()
_YEAR_FIRST = re.compile(r"(\d{4})([-/])(\d\d)\2(\d\d)")
_YEAR_LAST = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?:(?::|\.(?=\d\d\s*[ap]))(?P<minute>[0-5]\d))?\s*"
    r"(?:(?P<half>[ap])\.?\s*m\.?|in\s*the\s*(?P<part>morning|afternoon|evening)|at\s*(?P<late>night))?"
)


def date_of(text: str) -> str:
    """Year, month and day of a date, possibly without the year or the day; "" for other text. A date such as
    1/2/2003, which has two meanings, is kept as it is."""
    year = month = day = None
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day = int(found[1]), int(found[3]), int(found[4])
    elif found := _YEAR_LAST.fullmatch(text):
        (month, day), year = sorted(map(int, found.groups()[:2])), int(found[3])
        if month < day <= 12:
            return text
    else:
        for word in re.sub(r"[,.]|\b(?:on|in|the|of)\b", " ", text.casefold()).split():
            place = next((n for n, name in enumerate(_MONTHS, 1) if word in (name, name[:3], name[:4])), None)
            if place and month is None:
                month = place
            elif re.fullmatch(r"\d{4}", word) and year is None:
                year = int(word)
            elif (found := _DAY.fullmatch(word)) and day is None:
                day = int(found[1])
            else:
                return ""
    if not month or month > 12 or (day or 1) > 31 or year == day:
        return ""
    return f"{year or ''}-{month}-{day or ''}"


def times_of_day(text: str) -> frozenset[int]:
    """Minutes since midnight that a time of day can mean: two for 3:15, one for 15:15 and 3:15 p.m.; none for other
    text."""
    text = {"noon": "12pm", "midnight": "12am"}.get(text.casefold(), text.casefold())
    found = _TIME.fullmatch(text)
    if found is None or int(found["hour"]) > 23:
        return frozenset()
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    half = found["half"] or found["part"] or found["late"]
    if half:
        hours = {hour % 12 + 12 * (half not in ("a", "morning"))}
    elif 0 < hour <= 12:
        hours = {hour % 12, hour % 12 + 12}
    else:
        hours = {hour} if found["minute"] else set[int]()
    return frozenset(60 * one + minute for one in hours)


def is_time_of_day(text: str) -> bool:
    """True for a text that can only be a time of day: 3:05 and 3 p.m., but not 3:15, which may be a ratio, nor 3."""
    return bool(times_of_day(text)) and not re.fullmatch(r"\d+(?::[1-9]\d)?", text)
