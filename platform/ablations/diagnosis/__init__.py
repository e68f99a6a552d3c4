"""Why a run went wrong: what its log and its kept rollouts show, and which setting to change. A map of the room:

    diagnose         all rules on one run, the likeliest cause first; since when, how sure, what it has cost
    training_rules   what train rows show; reward_rules: rules about answers and rewards; symptom: what a rule finds
    held_out_rules   what evaluations and kept answers show
    library_rules    what a library did behind a run and its log shows
    second_opinion   a reading of kept answers that is independent of the verifiers
    history          the log of one run, from its folder, and windows of its steps

A rule looks at one kind of failure. Rules about steps are asked at every point of the log, so that a finding begins
where its rule first holds until the end. The rules of `scalerl.run.health`, which warn while a run trains, are among
them.
"""
