"""Parts of the pages. The parts of Compare are fragments that rerun alone; `why` and `rollouts` are parts of the page
Run.

progress     progress of the runs
figures      the curves, the differences, the plane of ceiling and compute, the linearised view, a training metric
verdicts     the table; the findings in words, the meaning of the words, diagnostics of the fits; the cells of a grid
note_form    a form for notes and tags
what_to_do   why a run does not train, and the command that helps
why          why a run went well or wrong
rollouts     what the policy of a run writes
"""
