"""Outcomes of the verifiers of text, without what was dropped from the answer."""

from scalerl.verifiers.mathematics.answer import judge_math
from scalerl.verifiers.short_answers.choice import judge_choice
from scalerl.verifiers.short_answers.qa import judge_qa


def verify_choice(answer, gold, **settings):
    return judge_choice(answer, gold, **settings).outcome


def verify_math(answer, gold, *, reads_prose=True, **settings):
    return judge_math(answer, gold, reads_prose=reads_prose, **settings).outcome


def verify_qa(answer, gold, **settings):
    return judge_qa(answer, gold, **settings).outcome
