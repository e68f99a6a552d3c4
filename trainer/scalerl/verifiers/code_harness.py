"""Runs inside the sandbox, around the policy's program: asks each question, writes each answer as a line of JSON.

Nothing here is trusted: it shares its process with the program, which may change all of it and so decide what is
written. It holds no expected value. The first line is `ready`, written before
the program has had any say: without it the harness itself has failed.
"""

import json
import os
import sys

MAX_DEPTH = 100


def plain(value, depth=0):
    """`value` in JSON, with lists, tuples, dicts and sets told apart."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth < MAX_DEPTH:
        if isinstance(value, list | tuple):
            return {"list": [plain(item, depth + 1) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[plain(key, depth + 1), plain(item, depth + 1)] for key, item in value.items()]}
        if isinstance(value, set | frozenset):
            return {"set": [plain(item, depth + 1) for item in value]}
    return {"other": type(value).__name__}


def new_module(name):
    """An empty module that is found under `name`."""
    module = type(sys)(name)
    sys.modules[name] = module
    return vars(module)


def function(names, call):
    """What `call` names: `f`, or `Solution.f` of a fresh instance."""
    owner, _, method = call.rpartition(".")
    return getattr(names[owner](), method) if owner else names[method]


def answer_calls(code, calls, write):
    """All calls in this process; what the program prints is lost."""
    if not calls:
        return
    nowhere = os.open("/dev/null", os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    names = new_module("program")
    exec(code, names)
    for question in calls:
        write(json.dumps(plain(function(names, question["call"])(*question["args"]))))


def answer_inputs(code, inputs, write, close):
    """Each input in a process of its own that begins like a fresh interpreter."""
    for number, question in enumerate(inputs):
        typed, printed = f"stdin-{number}", f"stdout-{number}"
        with open(typed, "w", encoding="utf-8", newline="") as file:
            file.write(question["stdin"])
        if not (child := os.fork()):
            os.dup2(os.open(typed, os.O_RDONLY), 0)
            os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 1)
            close()
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            exec(code, new_module("__main__"))
            return
        _, status = os.waitpid(child, 0)
        with open(printed, encoding="utf-8", errors="replace") as file:
            write(json.dumps({"failed": status} if status else file.read()))
        os.remove(typed)
        os.remove(printed)


def main():
    request = json.load(sys.stdin)
    channel = open(os.dup(1), "w", encoding="ascii")  # noqa: SIM115

    def write(line):
        channel.write(line + "\n")
        channel.flush()

    write("ready")
    code = compile(request["program"], "program.py", "exec")
    questions = request["questions"]
    answer_calls(code, [question for question in questions if "call" in question], write)
    answer_inputs(code, [question for question in questions if "stdin" in question], write, channel.close)


if __name__ == "__main__":
    main()
