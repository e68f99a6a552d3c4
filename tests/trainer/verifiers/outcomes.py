"""Outcomes of the verifiers of text, without what was dropped from the answer."""

from scalerl.verifiers.choice import judge_choice
from scalerl.verifiers.math_answer import judge_math
from scalerl.verifiers.qa import judge_qa


def verify_choice(answer, gold, **settings):
    return judge_choice(answer, gold, **settings).outcome


def verify_math(answer, gold, **settings):
    return judge_math(answer, gold, **settings).outcome


def verify_qa(answer, gold, **settings):
    return judge_qa(answer, gold, **settings).outcome
