"""Runs inside the sandbox around the policy's program: asks each question, and writes each answer as a line of JSON.

Nothing here is trusted: the program shares this process and may change all of it, and so decide what is written. So
there are no expected values here. The first line is `ready`, written before the program runs; without it the harness
itself has failed.
"""

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the text of that file stands before this one
    from scalerl.verifiers.programs.python_test_wire import from_wire, give, to_wire


def new_module(name):
    """Namespace of a new empty module registered under `name`."""
    module = type(sys)(name)
    sys.modules[name] = module
    return vars(module)


def function(names, call, is_exact):
    """Function named by `call`: `f`, or `Solution.f` of a fresh instance; if only the other one exists, that one."""
    if is_exact:
        return names[call]
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
        args = [from_wire(arg, None) for arg in question["args"]]
        value = function(names, question["call"], question["is_exact"])(*args)
        write(json.dumps(to_wire(value, lambda other: {"other": type(other).__name__})))


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
    give(request["given"])
    codes = [compile(request[part], f"{part}.py", "exec") for part in ("before", "program")]
    questions = request["questions"]
    answer_calls(codes, [question for question in questions if "call" in question], write)
    exec(codes[0], {})  # loads its imports once for all inputs
    answer_inputs(codes, [question for question in questions if "stdin" in question], write, channel.close)


if __name__ == "__main__":
    main()
