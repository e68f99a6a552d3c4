"""Runs inside the sandbox of the program: runs it and answers the tests' calls, attributes, items and exceptions.

The program shares this process and may change all of it, so it decides what is answered, but nothing else.
"""

import io
import operator
import os
import sys
from contextlib import redirect_stdout
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:  # the text of the other files stands before this one
    from typing import Any

    from scalerl.verifiers.programs.python_test_processes import BUILTINS
    from scalerl.verifiers.programs.python_test_wire import Channel, from_wire, give, to_wire


CONTAINERS = (list, dict, set, tuple)
CONSTANTS = (str, int, float, list, dict, set)
MOST_PRINTED = 1 << 16


class Unanswerable(BaseException):
    """The program lacks a name, or gave a value that cannot be sent: never an error that the tests may expect."""


class Program:
    """Names and objects that the tests may ask for."""

    def __init__(self, channel, names):
        self.channel, self.names = channel, names
        self.objects, self.numbers, self.callbacks = [], {}, {}

    def answer(self, request):
        what, target = request["ask"], request["target"]
        self.given = [self.names[name].__new__(self.names[name]) for name, _ in request["instances"]]
        for one, (_, attributes) in zip(self.given, request["instances"], strict=True):
            vars(one).update(self.read(attributes))
        parts = [self.read(part) for part in request["parts"]]
        if what == "kinds":
            found = self.names.get(target)
            is_error = isinstance(found, type) and issubclass(found, Exception)
            kinds = [kind.__name__ for kind in found.__mro__] if is_error else []
            return {"value": self.write((kinds, found if isinstance(found, CONSTANTS) else None))}
        if isinstance(target, str) and target not in self.names:
            raise Unanswerable
        owner = self.names[target] if isinstance(target, str) else self.objects[target]
        if what == "call":
            return self.called(owner, parts, request["parts"])
        if what == "next":
            return {"value": self.write([*islice(owner, 1)])}
        if what == "plain":
            return {"value": self.write(owner) if isinstance(owner, CONTAINERS) else None}
        return {"value": self.write((OPERATIONS.get(what) or getattr(operator, what))(owner, *parts))}

    def called(self, function, parts, wires):
        """The value of a call, and the lists, dicts and sets that it changed."""
        args, kwargs = parts
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)) as out:
            value = function(*args, **kwargs)
            if type(value) is COROUTINE:
                value = Awaited(__import__("asyncio").run(value))
        is_made = isinstance(function, type) and getattr(BUILTINS, function.__name__, None) is not function
        has_methods = is_made and isinstance(value, CONTAINERS)  # of a class derived from these
        message = {"value": self.object(value) if has_methods else self.write(value)}
        given = dict(enumerate(wires[0]["list"])) | dict(wires[1]["dict"])
        after = [
            (key, self.write(one))
            for key, one in (dict(enumerate(args)) | kwargs).items()
            if isinstance(one, list | dict | set | bytearray)
        ]
        changed = [pair for pair in after if pair[1] != given[pair[0]]]
        printed = out.buffer.getvalue().decode(errors="replace")[:MOST_PRINTED]
        return message | ({"changed": changed} if changed else {}) | ({"printed": printed} if printed else {})

    def write(self, value):
        try:
            return to_wire(value, self.write_other)
        except BaseException as problem:
            raise Unanswerable from problem

    def write_other(self, value):
        if isinstance(value, Awaited):
            return {"awaitable": self.write(value.result)}
        for number, function in self.callbacks.items():
            if function is value:
                return {"callback": number}
        if isinstance(value, type) and getattr(BUILTINS, value.__name__, None) is value:
            return {"builtin": value.__name__}
        if hasattr(value, "__index__") and not isinstance(value, type):
            return self.write(value.__index__())
        is_pythons = hasattr(value, "__next__") and type(value).__module__ != "program"
        return self.object(value, "iterator" if is_pythons else "object")

    def object(self, value, kind="object"):
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return {kind: self.numbers[id(value)]}

    def read(self, wire) -> "Any":
        return from_wire(wire, self.read_other)

    def read_other(self, kind, content):
        if kind == "target":
            return self.names[content] if isinstance(content, str) else self.objects[content]
        if kind == "builtin":
            return getattr(BUILTINS, content)
        if kind == "iterator":
            return map(self.read, content)
        if kind == "slice":
            return slice(*map(self.read, content))
        if kind == "instance":
            return self.given[content]
        return self.callback(*content)

    def callback(self, number, name, doc):
        def function(*args, **kwargs):
            self.channel.send({"callback": number, "args": self.write(args), "kwargs": self.write(kwargs)})
            answer = self.channel.receive()
            if "raised" in answer:
                raise getattr(BUILTINS, answer["raised"], RuntimeError)(answer["text"])
            return self.read(answer["value"])

        function.__name__, function.__doc__ = name or "function", doc
        self.callbacks[number] = function
        return function


class Awaited:
    """Result of the program's coroutine."""

    def __init__(self, result):
        self.result = result


def about(error):
    """The content of the program's exception: attributes with simple values, and arguments if it shows them."""
    facts = vars(error) | ({"code": error.code} if isinstance(error, SystemExit) else {})
    found: dict[str, object] = {key: value for key, value in facts.items() if isinstance(value, SIMPLE)}
    if type(error).__str__ in SHOW_ARGUMENTS and all(isinstance(one, SIMPLE) for one in error.args):
        found["args"] = error.args
    return found


SIMPLE = (str, int, float, type(None))
SHOW_ARGUMENTS = (BaseException.__str__, KeyError.__str__)
COROUTINE = __import__("types").CoroutineType


OPERATIONS = {
    "get": getattr,
    "set": setattr,
    "del": delattr,
    "rmul": lambda owner, factor: factor * owner,
    **{kind.__name__: kind for kind in (iter, len, bool, int, float, str, repr, hash, isinstance, issubclass)},
}


def serve_program(program, before, given, max_bytes):
    """Write `ready`, run the program, and answer until the tests end."""
    channel = Channel(max_bytes)
    channel.send("ready")
    module = type(sys)("program")
    sys.modules["program"] = module
    names = vars(module)
    try:
        give(given)
        exec(compile(before, "before.py", "exec"), names)
        exec(compile(program, "program.py", "exec"), names)
        side = Program(channel, names)
        while True:
            request = channel.receive()
            try:
                answer = side.answer(request)
            except Unanswerable:
                return
            except BaseException as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                answer = {"raised": kinds, "text": f"{error!s:.500}", "about": side.write(about(error))}
            channel.send(answer)
    finally:
        os._exit(0)  # ends any threads that are left
