"""A policy that answers as told, and programs that ask it."""

from pathlib import Path

import numpy as np

from scalerl.environments.programs import Asking, Programs
from scalerl.environments.protocol import Start
from scalerl.recipe.episodes import AgentProgram, Episodes
from scalerl.rollout import Prompt, Rollout
from scalerl.tokens.characters import CharacterTokenizer

ASK = """
import json, os, sys, urllib.error, urllib.request

episode = json.load(sys.stdin)


def ask(*messages, path="/chat/completions", key=os.environ["OPENAI_API_KEY"], content=None, **settings):
    body = {"model": "policy", "messages": [{"role": r, "content": t} for r, t in messages], **settings}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + path,
        json.dumps(body).encode() if content is None else content,
        {"Authorization": "Bearer " + key, "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.read().decode() if settings.get("stream") else json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["message"]


def said(*messages, **settings):
    return ask(*messages, **settings)["choices"][0]["message"]["content"]


def end(reward, **more):
    print(json.dumps({"reward": reward, **more}))
"""
"""What a program of the standard library needs to ask."""


def program_settings(folder: Path, code: str, **settings) -> Episodes:
    """Settings of a task whose program is this code after `ASK`."""
    (folder / "program.py").write_text(ASK + code)
    program = AgentProgram(command=("{python}", "program.py"), folder=str(folder))
    return Episodes(environment=program, **{"turns": 4, "context_tokens": 200, "time_limit_s": 20, **settings})


def programs_of(folder: Path, code: str, *, limit: int = 8, **settings) -> Programs:
    """Programs of this code after `ASK`, with a temperature of 1."""
    return Programs(
        program_settings(folder, code, **settings), CharacterTokenizer(thinks=False), limit=limit, temperature=1.0
    )


def turn_of(text: str, *, ends: bool = True) -> Rollout:
    """A turn in which the policy writes this text, each token with a log-probability of its own."""
    tokens = [*CharacterTokenizer(thinks=False).encode(text), *([1] if ends else [])]
    return Rollout(
        prompt=Prompt(task="program", id="0", tokens=(), answer=None, difficulty=0.0),
        tokens=np.array(tokens, dtype=np.int64),
        logprobs=np.array([-0.5 - place for place in range(len(tokens))], dtype=np.float32),
        versions=np.zeros(len(tokens), dtype=np.int32),
        forced=np.zeros(len(tokens), dtype=np.bool_),
        truncated=not ends,
    )


def played(programs: Programs, texts: list[str], *, keys: int = 1) -> tuple[dict[int, list[Asking]], dict]:
    """What each program asks while the policy answers its n-th request with the n-th text, and how it ends."""
    asked: dict[int, list[Asking]] = {key: [] for key in range(keys)}
    ends = {}
    for key in range(keys):
        programs.start(key, Start(seed=key, row={"level": key}))
    while len(ends) < keys:
        for key, reply in programs.replies():
            if isinstance(reply, Asking):
                asked[key].append(reply)
                text = texts[len(asked[key]) - 1]
                programs.act(key, text, turn_of(text))
            else:
                ends[key] = reply
                programs.forget(key)
    return asked, ends
