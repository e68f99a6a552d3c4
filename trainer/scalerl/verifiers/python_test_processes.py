"""Runs inside two sandboxes: the tests in one, the policy's program in the other. Values are sent as lines of JSON.

    run_tests      runs the tests; each name they use from the program is a `Remote`, whose use asks the other side
    serve_program  runs the program and answers: calls, attributes and items of its objects, and exceptions

The program shares a process with `serve_program` and may change all of it, so it decides what is answered, but nothing
else. An answer is read as plain values of Python's own types, so the program's methods never run in the tests' process.
A value of any other type stays in the program's process; the tests get a `Remote` for it, which equals only itself.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the text of the other file stands before this one
    from typing import Any

    from scalerl.verifiers.python_test_wire import Channel, OtherSideGone, Unsendable, from_wire, to_wire

# Side of the tests.


class Tests:
    """The tests' view of the program: a channel, and functions of theirs that the program was given."""

    def __init__(self, channel, in_place):
        self.channel, self.in_place = channel, in_place
        self.functions = []
        self.ended = False

    def ask(self, what, target, *parts):
        """The program's answer; raises its exception."""
        try:
            message = self.exchange(what, target, parts)
            if "raised" not in message:
                if self.in_place and what == "call":
                    take_over(parts[0], self.read(message["args"]))
                return self.read(message["value"])
            error = exception(message["raised"], message["text"])
        except BaseException as problem:  # any answer: tests that catch this have not passed
            self.ended = True
            raise OtherSideGone(f"{type(problem).__name__}: {problem}") from None
        raise error

    def exchange(self, what, target, parts):
        """The answer, after serving the program's calls of the tests' own functions."""
        if self.ended:
            raise OtherSideGone
        self.channel.send(
            {"ask": what, "target": target, "parts": [*map(self.write, parts)], "in_place": self.in_place}
        )
        while "callback" in (message := self.channel.receive()):
            function, args = self.functions[message["callback"]], self.read(message["args"])
            try:
                answer = {"value": self.write(function(*args))}
            except Exception as error:
                answer = {"raised": f"{type(error).__name__}: {error}"}
            self.channel.send(answer)
        return message

    def write(self, value):
        return to_wire(value, self.write_other)

    def write_other(self, value):
        if isinstance(value, Remote):
            return {"target": target_of(value)}
        if getattr(value, "__module__", None) == "builtins" and hasattr(BUILTINS, value.__name__):
            return {"builtin": value.__name__}
        if callable(value) and not isinstance(value, type):
            self.functions.append(value)
            return {"callback": len(self.functions) - 1}
        raise Unsendable(f"the tests pass the program a {type(value).__name__}, which cannot be sent")

    def read(self, wire) -> "Any":
        return from_wire(wire, self.read_other)

    def read_other(self, kind, content):
        if kind == "iterator":
            return iter([self.read(item) for item in content])
        if kind == "awaitable":
            return finished(self.read(content))
        if kind == "builtin" and isinstance(getattr(BUILTINS, content), type):
            return getattr(BUILTINS, content)
        if kind == "object" and type(content) is int:
            return Remote(self, content)
        raise ValueError(f"not a value: {kind!r:.80}")


async def finished(value):
    """Coroutine with the result of the program's coroutine, which ran in its own process."""
    return value


class Remote:
    """A name or an object of the program. A remote equals only itself, regardless of the program's answer."""

    def __init__(self, tests, target):
        object.__setattr__(self, "_tests", tests)
        object.__setattr__(self, "_target", target)

    def __getattribute__(self, name):
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        return ask(self, "get", name)

    def __setattr__(self, name, value):
        ask(self, "set", name, value)

    def __call__(self, *args, **kwargs):
        return ask(self, "call", list(args), kwargs)

    def __getitem__(self, key):
        return ask(self, "item", key)

    def __setitem__(self, key, value):
        ask(self, "set_item", key, value)

    def __iter__(self):
        return iter(ask(self, "list"))

    def __len__(self):
        return ask(self, "len")

    def __bool__(self):
        return ask(self, "bool") is True

    def __str__(self):
        return str(ask(self, "str"))

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Remote) and target_of(self) == target_of(other)

    def __hash__(self):
        return hash(target_of(self))


def target_of(remote):
    return object.__getattribute__(remote, "_target")


def ask(remote, what, *parts):
    return object.__getattribute__(remote, "_tests").ask(what, target_of(remote), *parts)


def exception(names, text):
    """The program's exception, as the nearest built-in class."""
    for name in names:
        kind = getattr(BUILTINS, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(str(text))
            except TypeError:  # a class that needs more than a text
                continue
    return RuntimeError(str(text))


def take_over(given, after):
    """Update the lists, dicts and sets among the arguments with the program's changes."""
    for one, new in zip(given, after, strict=True):
        if isinstance(one, list) and isinstance(new, list):
            one[:] = new
        elif isinstance(one, dict | set) and type(one) is type(new):
            one.clear()
            one.update(new)


def run_test_class(kind):
    """Call every test method of a class as unittest or pytest would; raises failures."""
    names = [name for name in dir(kind) if name.startswith("test")]
    if hasattr(kind, "debug"):
        kind.setUpClass()
        for name in names:
            kind(name).debug()
        kind.tearDownClass()
        return
    for name in names:
        instance = kind()
        getattr(instance, "setup_method", lambda *_: None)()
        getattr(instance, name)()
        getattr(instance, "teardown_method", lambda *_: None)()


def counting(tests):
    """Tests that report `assertion_ran` for each assertion that held, or whose expected error was raised."""
    ast = __import__("ast")
    told = ast.parse("assertion_ran()").body

    def is_assertion(node):
        if isinstance(node, ast.Assert):
            return not isinstance(node.test, ast.Constant)
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(node, ast.With):
            call = node.items[0].context_expr
        name = getattr(getattr(call, "func", None), "attr", "")
        return name.startswith("assert")

    def catches_a_failure(handler):
        caught = ast.unparse(handler.type) if handler.type else "Exception"
        return any(name in caught.replace(",", " ").strip("()").split() for name in SWALLOWING)

    class Counting(ast.NodeTransformer):
        def generic_visit(self, node):
            super().generic_visit(node)
            return [node, *told] if isinstance(node, ast.stmt) and is_assertion(node) else node

        def visit_Try(self, node):  # noqa: N802
            expects = any(isinstance(one, ast.Assert) for part in (*node.body, *node.orelse) for one in ast.walk(part))
            super().generic_visit(node)
            for handler in node.handlers:
                if expects and not catches_a_failure(handler):
                    handler.body[:0] = told
            return node

    return ast.fix_missing_locations(Counting().visit(ast.parse(tests, "tests.py")))


SWALLOWING = ("Exception", "BaseException", "AssertionError")


def run_tests(tests, before, names, in_place, max_bytes):
    """Run the tests and write `ready`, then the verdict: right, wrong, or `lost` if the program never started.

    Tests without a single executed assertion make no program right.
    """
    verdicts = os.dup(2)
    channel = Channel(max_bytes)
    os.dup2(0, 2)
    os.write(verdicts, b"ready\n")
    if "random" in tests:
        __import__("random").seed(0)
    module = type(sys)("__main__")
    sys.modules["tests"] = module
    space = vars(module)
    ran = set()
    if "unittest" in tests:
        __import__("unittest").main = lambda *_, **__: None  # `run_test_class` runs the classes
    verdict = b"wrong"
    try:
        if channel.receive() != "ready":
            raise OtherSideGone
    except (OtherSideGone, ValueError):
        verdict = b"lost"
    else:
        side = Tests(channel, in_place)
        try:
            exec(compile(before, "before.py", "exec"), space)
            space.update({name: Remote(side, name) for name in names})
            space.update(run_test_class=run_test_class, assertion_ran=lambda: ran.add(True))
            exec(compile(counting(tests), "tests.py", "exec"), space)
            verdict = b"right" if ran and not side.ended else b"wrong"
        except BaseException:
            verdict = b"wrong"
    os.write(verdicts, verdict + b"\n")
    os._exit(0)


# Side of the program.


class Program:
    """Names and objects that the tests may ask for."""

    def __init__(self, channel, names):
        self.channel, self.names, self.objects = channel, names, []

    def answer(self, request):
        what, target = request["ask"], request["target"]
        parts = [self.read(part) for part in request["parts"]]
        owner = self.names[target] if isinstance(target, str) else self.objects[target]
        if what == "get":
            return {"value": self.write(getattr(owner, parts[0]))}
        if what == "set":
            return {"value": setattr(owner, *parts)}
        if what == "item":
            return {"value": self.write(owner[parts[0]])}
        if what == "set_item":
            owner[parts[0]] = parts[1]
            return {"value": None}
        if what == "call":
            args, kwargs = parts
            value = self.write(owner(*args, **kwargs))
            return {"value": value, "args": self.write(args) if request["in_place"] else None}
        return {"value": self.write({"list": list, "len": len, "bool": bool, "str": str}[what](owner))}

    def write(self, value):
        return to_wire(value, self.write_other)

    def write_other(self, value):
        if hasattr(value, "cr_frame"):
            return {"awaitable": self.write(__import__("asyncio").run(value))}
        if hasattr(value, "__next__"):
            return {"iterator": [self.write(item) for item in value]}
        if isinstance(value, type) and getattr(BUILTINS, value.__name__, None) is value:
            return {"builtin": value.__name__}
        if hasattr(value, "__index__") and not isinstance(value, type):
            return self.write(value.__index__())
        self.objects.append(value)
        return {"object": len(self.objects) - 1}

    def read(self, wire) -> "Any":
        return from_wire(wire, self.read_other)

    def read_other(self, kind, content):
        if kind == "target":
            return self.names[content] if isinstance(content, str) else self.objects[content]
        if kind == "builtin":
            return getattr(BUILTINS, content)
        return self.callback(content)

    def callback(self, number):
        def function(*args):
            self.channel.send({"callback": number, "args": self.write(args)})
            answer = self.channel.receive()
            if "raised" in answer:
                raise RuntimeError(answer["raised"])
            return self.read(answer["value"])

        return function


def serve_program(program, before, max_bytes):
    """Write `ready`, run the program, and answer until the tests end."""
    channel = Channel(max_bytes)
    channel.send("ready")
    module = type(sys)("program")
    sys.modules["program"] = module
    names = vars(module)
    try:
        exec(compile(before, "before.py", "exec"), names)
        exec(compile(program, "program.py", "exec"), names)
        side = Program(channel, names)
        while True:
            request = channel.receive()
            try:
                answer = side.answer(request)
            except BaseException as error:
                kinds = [kind.__name__ for kind in type(error).__mro__]
                answer = {"raised": kinds, "text": f"{error!s:.500}"}
            channel.send(answer)
    finally:
        os._exit(0)  # ends any threads that are left


BUILTINS = sys.modules["builtins"]
