"""Runs inside the sandbox around the policy's program: asks each question, and writes each answer as a line of JSON.

Nothing here is trusted: the program shares this process and may change all of it, and so decide what is written. So
there are no expected values here. The first line is `ready`, written before the program runs; without it the harness
itself has failed.
"""

import json
import os
import sys

MAX_DEPTH = 100
MAX_INT_BITS = 10_000
"""Longer integers are written in hexadecimal, because Python rejects more than 4,300 decimal digits."""


def named(value):
    """Name of a type that JSON cannot write."""
    return {"other": type(value).__name__}


def plain(value, other=named, depth=0):
    """`(1, {2})` as `{"tuple": [1, {"set": [2]}]}`; `other` writes what has no such form or is nested too deep."""
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        return {"int": format(value, "x")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return {"bytes": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return plain(value.item(), other, depth)
    if depth < MAX_DEPTH:
        if isinstance(value, dict):
            return {"dict": [[plain(part, other, depth + 1) for part in pair] for pair in value.items()]}
        for kind in (list, tuple, set, frozenset):
            if isinstance(value, kind):
                return {kind.__name__: [plain(item, other, depth + 1) for item in value]}
    return other(value)


KINDS = {
    "list": lambda items: [given(item) for item in items],
    "tuple": lambda items: tuple(given(item) for item in items),
    "set": lambda items: {given(item) for item in items},
    "frozenset": lambda items: frozenset(given(item) for item in items),
    "dict": lambda items: {given(key): given(item) for key, item in items},
    "int": lambda digits: int(digits, 16),
    "bytes": bytes.fromhex,
    "complex": lambda parts: complex(*parts),
}


def given(wire):
    """Argument from its JSON: `{"tuple": [1, {"bytes": "ff"}]}` is `(1, b"\xff")`."""
    if not isinstance(wire, dict):
        return wire
    ((kind, content),) = wire.items()
    return KINDS[kind](content)


def new_module(name):
    """Namespace of a new empty module registered under `name`."""
    module = type(sys)(name)
    sys.modules[name] = module
    return vars(module)


def function(names, call):
    """Function named by `call`: `f`, or `Solution.f` of a fresh instance; if only the other one exists, that one."""
    owner, _, method = call.rpartition(".")
    if owner and owner not in names and method in names:
        return names[method]
    if not owner and method not in names and "Solution" in names:
        owner = "Solution"
    return getattr(names[owner](), method) if owner else names[method]


def answer_calls(codes, calls, write):
    """Answer all calls in this process, discarding what the program prints."""
    if not calls:
        return
    nowhere = os.open("/dev/null", os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    names = new_module("program")
    for code in codes:
        exec(code, names)
    for question in calls:
        write(json.dumps(plain(function(names, question["call"])(*map(given, question["args"])))))


def answer_inputs(codes, inputs, write, close):
    """Answer each input in a separate process that starts like a fresh interpreter."""
    for number, question in enumerate(inputs):
        typed, printed = "stdin", f"stdout-{number}"
        with open(typed, "w", encoding="utf-8", newline="") as file:
            file.write(question["stdin"])
        if not (child := os.fork()):
            os.dup2(os.open(typed, os.O_RDONLY), 0)
            os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT), 1)
            close()
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            names = new_module("__main__")
            for code in codes:
                exec(code, names)
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
    codes = [compile(request[part], f"{part}.py", "exec") for part in ("before", "program")]
    questions = request["questions"]
    answer_calls(codes, [question for question in questions if "call" in question], write)
    exec(codes[0], {})  # loads its imports once for all inputs
    answer_inputs(codes, [question for question in questions if "stdin" in question], write, channel.close)


if __name__ == "__main__":
    main()
