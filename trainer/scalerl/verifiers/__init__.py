"""Judges of answers given as text, without the thinking before them; none of them loads torch.

mathematics    values and formulas, in a worker process with a time limit
programs       programs, by their tests in the sandbox
short_answers  letters of choices, and words against several right answers
gym_score      scores of `reasoning-gym`; runs in the worker
judge_worker   processes of mathematics and of scores, with time limit and restart
"""
