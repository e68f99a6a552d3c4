"""The trainer: a resolved recipe to a curve. It knows nothing of sweeps, Slurm or MLflow.

The rooms by height; each imports only what stands below it:

    checks      what can be known before training
    run         one run: the loop, its evaluations, its checkpoints, its files
    memory      how much memory a run needs, known before it starts
    schedules   when generators generate and trainers train    processes   generators and a trainer as processes
    cluster     generators and a trainer together              evaluation  pass rates that are never trained on
    generator   prompts in, rollouts out                       learner     groups in, new weights out
    prompts     which prompt comes next, and what its answers are worth
    model       token ids to log-probabilities                 tasks       prompts, a verifier, demonstrations
    objective   the formulas of an optimiser step              tokens      text to token ids and back
    environments  text worlds that answer the policy, by one protocol
    recipe      every choice of a run, typed                   verifiers   is this answer right?
    sandbox     runs programs that the policy wrote            weights     how weights reach generators
    gym         problems and scores of the library `reasoning-gym`
    frozen, rollout    the base of what a human types; what travels between prompts, generator and learner
    process_variables  variables of this process's environment, set for a time
    warden             ends started processes when their starter is gone
    signals            signals to all processes of a run
    credentials        passwords and keys, hidden in everything that is stored, printed or sent
    plain_json         JSON that someone may have edited
    readable_folders   the folders from which an agent may have files read
    left_names         names in shared memory that a killed process leaves behind
    errors      everything that the trainer raises on purpose
    durable     files that last
    quantities  numbers of things as people read them
"""
