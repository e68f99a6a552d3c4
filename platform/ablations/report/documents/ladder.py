"""A ladder of scales as blocks: per question the picture and a table with a row per variant, its difference at each
scale and the trend."""

from ablations.answers.answer import Question
from ablations.answers.interval import Interval
from ablations.answers.ladder import Ladder
from ablations.findings.scale_ladder import ScaleLadder
from ablations.report.documents.blocks import Blocks, Cell, Figure, Heading, Text, Tone, table_of_rows
from ablations.report.documents.number_cells import interval_cell
from ablations.report.figures.ladder import LADDER_LEGEND, ladder_chart

WORD_TONES: dict[str, Tone] = {"carries": "good", "fades": "mixed", "flips": "bad"}
LADDER_NOTE = (
    "carries: the difference is seen at the largest scale and in the mean over all. fades: the difference is seen "
    "at the smallest scale, and the trend leads back to zero. flips: the differences at two scales have opposite signs."
)


def ladder_section(found: ScaleLadder) -> Blocks:
    """The section of a report about the ladder."""
    return [Heading(text="Scale ladder"), *ladder_document(found)]


def ladder_document(found: ScaleLadder) -> Blocks:
    """The picture and the table of each question that some variant answers at two scales, and notes."""
    questions = [block for question in found.questions for block in question_blocks(found, question)]
    return [*questions, *(Text(text=text, kind="note") for text in ladder_sentences(found))]


def question_blocks(found: ScaleLadder, question: Question) -> Blocks:
    """The title, the picture and the table of one question."""
    rows = [
        {"variant": name, **_cells(found, by[question.name])}
        for name, by in found.ladders.items()
        if question.name in by
    ]
    name = f"ladder-{question.name}"
    title = f"{question.heading.format(reference=found.reference)}, by scale"
    return [
        Heading(text=title, level=3),
        Figure(name=name, caption=LADDER_LEGEND, chart=ladder_chart(found, question)),
        table_of_rows(rows, name=name, kinds={"over scales": "words"}),
    ]


def ladder_sentences(found: ScaleLadder) -> list[str]:
    """Sentences on the scale of the forecasts, the check of the last one, and the variants left out."""
    checked = [
        (ahead, ladder.interval(ladder.rungs[-1].difference))
        for by in found.ladders.values()
        for ladder in by.values()
        if (ahead := ladder.left_out) is not None
    ]
    said = [LADDER_NOTE, f"Trend: per {found.per_text}. Forecast: for {found.at_text}, if the trend continues."]
    if checked:
        inside = sum(
            _end(ahead.lo, ahead) <= _end(there.hi, there) and _end(there.lo, there) <= _end(ahead.hi, ahead)
            for ahead, there in checked
        )
        largest = found.scales[-1].name
        said.append(
            f"Check: without {largest}, the forecast for it contained the measured difference in {inside} of "
            f"{len(checked)} cases."
        )
    return [*said, *found.notes]


def _cells(found: ScaleLadder, ladder: Ladder) -> dict[str, Cell | str]:
    form = ladder.question.form
    rungs = {rung.scale: interval_cell(ladder.interval(rung.difference), form) for rung in ladder.rungs}
    return {
        **{scale.name: rungs.get(scale.name, "") for scale in found.scales},
        "trend": interval_cell(ladder.interval(ladder.trend), form),
        "over scales": Cell(ladder.word, tone=WORD_TONES.get(ladder.word, "")),
        "forecast": interval_cell(ladder.forecast(found.at), form),
    }


def _end(end: float | None, interval: Interval) -> float:
    return interval.estimate if end is None else end
