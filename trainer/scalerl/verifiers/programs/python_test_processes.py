"""Runs inside the sandbox of the tests: each name of the program is a `Remote`, whose use asks the other side.

An answer is read as plain values of Python's own types, so the program's methods never run in the tests' process.
A value of any other type stays in the program's process; the tests get a `Remote` for it, which is unlike any value of
theirs. Two remotes may be compared and combined by the program's own operators.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the text of the other file stands before this one
    from typing import Any

    from scalerl.verifiers.programs.python_test_wire import (
        RESTORED,
        Channel,
        OtherSideGone,
        Unsendable,
        from_wire,
        give,
        to_wire,
    )


RESTORED |= {
    "decimal.Decimal": lambda value: [str(value)],
    "fractions.Fraction": lambda value: [value.numerator, value.denominator],
    "datetime.date": lambda value: [value.year, value.month, value.day],
    "datetime.time": lambda value: [value.hour, value.minute, value.second, value.microsecond],
    "datetime.datetime": lambda value: [*value.timetuple()[:6], value.microsecond],
    "datetime.timedelta": lambda value: [value.days, value.seconds, value.microseconds],
    "numpy.array": None,
    "collections.deque": lambda value: [list(value), value.maxlen],
    "collections.Counter": lambda value: [dict(value)],
    "collections.OrderedDict": lambda value: [list(value.items())],
    "collections.defaultdict": lambda value: [value.default_factory, dict(value)],
}


class Tests:
    """The tests' view of the program: a channel, and the functions of the tests that the program was given."""

    def __init__(self, channel, shared):
        self.channel, self.shared = channel, shared  # classes that the program knows too
        self.functions, self.changes, self.own_errors, self.remotes = [], [], {}, {}
        self.ended = False

    def named(self, name):
        """The program's `name`: a value; for an exception class, one that the tests can catch; else a remote."""
        kinds, constant = self.ask("kinds", name)
        if isinstance(constant, str | int | float | list | dict | set):  # no class: `except` would catch anything by it
            return constant
        if not kinds:
            return Remote(self, name)
        return self.own_errors.setdefault(kinds[0], type(kinds[0], (self.kind(kinds[1:]),), {}))

    def kind(self, names):
        """The class of an exception: the program's own, or else the nearest built-in one."""
        for name in names:
            kind = self.own_errors.get(name) or getattr(BUILTINS, name, None) if isinstance(name, str) else None
            if isinstance(kind, type) and issubclass(kind, BaseException):
                return kind
        return RuntimeError

    def ask(self, what, target, *parts):
        """The program's answer; raises its exception."""
        try:
            message = self.exchange(what, target, parts)
            if "raised" not in message:
                if "changed" in message:
                    given = dict(enumerate(parts[0])) | parts[1]
                    self.changes = [(given[key], self.read(new)) for key, new in message["changed"]]
                sys.stdout.write(message.get("printed", ""))
                return self.read(message["value"])
            error = self.error(message)
        except BaseException as problem:  # any answer: tests that catch this have not passed
            self.ended = True
            raise OtherSideGone(f"{type(problem).__name__}: {problem}") from None
        raise error

    def error(self, message):
        """The program's exception. A StopIteration would silently end a loop of the tests."""
        kind, text = self.kind(name for name in message["raised"] if name != "StopIteration"), str(message["text"])
        try:
            error = kind(text)
        except TypeError:  # a class that needs more than a text
            error = RuntimeError(text)
        for key, value in self.read(message["about"]).items():
            setattr(error, key, value)
        return error

    def show_changes(self):
        """Apply the program's changes to lists, dicts and sets that it was given, after the statement that called it.

        Within `assert f(xs) == sorted(xs)` a program that empties `xs` gains nothing.
        """
        for given, new in self.changes:
            if isinstance(given, list | bytearray):
                given[:] = new
            else:
                given.clear()
                given.update(new)
        self.changes = []

    def exchange(self, what, target, parts):
        """The answer, after serving the program's calls of the tests' own functions."""
        if self.ended:
            raise OtherSideGone
        self.show_changes()
        self.instances, attributes = [], []
        message = {"ask": what, "target": target, "parts": [*map(self.write, parts)], "instances": attributes}
        for one in self.instances:  # grows while it is written: a list of nodes has any length
            attributes.append([type(one).__name__, self.write(vars(one))])
        self.channel.send(message)
        while "callback" in (message := self.channel.receive()):
            args, kwargs = self.read(message["args"]), self.read(message["kwargs"])
            try:
                answer = {"value": self.write(self.functions[message["callback"]](*args, **kwargs))}
            except Exception as error:
                answer = {"raised": type(error).__name__, "text": str(error)}
            self.channel.send(answer)
        return message

    def write(self, value):
        return to_wire(value, self.write_other)

    def write_other(self, value):
        if isinstance(value, Remote):
            return {"target": target_of(value)}
        if getattr(value, "__module__", None) == "builtins" and hasattr(BUILTINS, value.__name__):
            return {"builtin": value.__name__}
        if type(value) in self.shared:
            known = [number for number, one in enumerate(self.instances) if one is value]
            if not known:
                self.instances.append(value)
            return {"instance": known[0] if known else len(self.instances) - 1}
        if isinstance(value, slice):
            return {"slice": [*map(self.write, (value.start, value.stop, value.step))]}
        if hasattr(value, "__next__"):
            return {"iterator": [*map(self.write, value)]}
        if callable(value) and not isinstance(value, type):
            self.functions.append(value)
            about = [getattr(value, name, None) for name in ("__name__", "__doc__")]
            return {"callback": [len(self.functions) - 1, *about]}
        raise Unsendable(f"the tests pass the program a {type(value).__name__}, which cannot be sent")

    def read(self, wire) -> "Any":
        return from_wire(wire, self.read_other)

    def read_other(self, kind, content):
        if kind == "iterator" and type(content) is int:
            return items_of(Remote(self, content))
        if kind == "callback":
            return self.functions[content]
        if kind == "awaitable":
            return finished(self.read(content))
        if kind == "builtin" and isinstance(getattr(BUILTINS, content), type):
            return getattr(BUILTINS, content)
        if kind == "object" and type(content) is int:
            return self.remotes.setdefault(content, Remote(self, content))
        raise ValueError(f"not a value: {kind!r:.80}")


async def finished(value):
    """Coroutine with the result of the program's coroutine, which ran in its own process."""
    return value


def items_of(remote):
    """Items of the program's iterator, each asked for when it is needed."""
    while item := ask(remote, "next"):
        yield item[0]


class Remote:
    """A name or an object of the program. A remote equals no value of the tests, regardless of the program's answer."""

    def __init__(self, tests, target):
        object.__setattr__(self, "_tests", tests)
        object.__setattr__(self, "_target", target)

    def __getattribute__(self, name):
        if name.startswith("__") and name.endswith("__") and name not in TOLD:
            return object.__getattribute__(self, name)
        return ask(self, "get", name)

    def __setattr__(self, name, value):
        ask(self, "set", name, value)

    def __delattr__(self, name):
        ask(self, "del", name)

    def __call__(self, *args, **kwargs):
        made = ask(self, "call", list(args), kwargs)
        if isinstance(made, Remote) and str(target_of(self))[:1].isupper():
            object.__setattr__(made, "_is_of_a_class", True)
        return made

    def __contains__(self, item):
        """By the program's own word only for an object of a class: the value of a function could contain anything."""
        is_of_a_class = "_is_of_a_class" in object.__getattribute__(self, "__dict__")
        return ask(self, "contains", item) is True if is_of_a_class else any(one == item for one in self)

    def __iter__(self):
        return ask(self, "iter")

    def __next__(self):
        if item := ask(self, "next"):
            return item[0]
        raise StopIteration

    def __bool__(self):
        return ask(self, "bool") is True

    def __str__(self):
        return str(ask(self, "str"))

    def __repr__(self):
        return str(ask(self, "repr"))

    def __instancecheck__(self, instance):
        return isinstance(instance, Remote) and ask(instance, "isinstance", self) is True

    def __subclasscheck__(self, kind):
        return isinstance(kind, Remote) and ask(kind, "issubclass", self) is True

    def __enter__(self):
        return ask(self, "get", "__enter__")()

    def __exit__(self, *_):
        ask(self, "get", "__exit__")(None, None, None)  # its result would hide a failure of the tests

    def __eq__(self, other):
        if not isinstance(other, Remote):
            return isinstance(other, list | dict | set | tuple) and ask(self, "plain") == other
        return target_of(self) == target_of(other) or ask(self, "eq", other) is True

    def __hash__(self):
        return hash(ask(self, "hash"))


def plain_operation(what):
    return lambda self, *parts: ask(self, what, *parts)


def between_remotes(what):
    """The program's operator for two of its objects; with a value of the tests it could pass for any number.

    A multiple of an object is an object again.
    """

    def operation(self, other):
        if not isinstance(other, Remote) and what not in ("mul", "rmul", "truediv", "pow"):
            return NotImplemented
        value = ask(self, what, other)
        return value if isinstance(other, Remote) or isinstance(value, Remote) else NotImplemented

    return operation


for what in ("getitem", "setitem", "delitem", "len", "abs", "neg", "int", "float"):
    setattr(Remote, f"__{what}__", plain_operation(what))
OPERATORS = "add sub mul rmul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge"
for what in OPERATORS.split():
    setattr(Remote, f"__{what.strip('_')}__", between_remotes(what))


def target_of(remote):
    return object.__getattribute__(remote, "_target")


def ask(remote, what, *parts):
    return object.__getattribute__(remote, "_tests").ask(what, target_of(remote), *parts)


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
    told, ran = ast.parse("assertion_ran()").body, ast.parse("statement_ran()").body

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
            if not isinstance(node, ast.stmt):
                return node
            calls = isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Assert)
            return [node, *(told if is_assertion(node) else []), *(ran if calls else [])]

        def visit_Try(self, node):  # noqa: N802
            expects = any(isinstance(one, ast.Assert) for part in (*node.body, *node.orelse) for one in ast.walk(part))
            super().generic_visit(node)
            for handler in node.handlers:
                if expects and not catches_a_failure(handler):
                    handler.body[:0] = told
            return node

    return ast.fix_missing_locations(Counting().visit(ast.parse(tests, "tests.py")))


TOLD = ("__name__", "__doc__", "__wrapped__")
"""Attributes with two underscores that the program is asked for."""
SWALLOWING = ("Exception", "BaseException", "AssertionError")


def run_tests(tests, before, given, names, max_bytes):
    """Run the tests and write `ready`, then the verdict: right, wrong, or `lost` if the program never started.

    Tests without a single executed assertion never make a program right.
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
    try:
        if channel.receive() != "ready":
            raise OtherSideGone
    except (OtherSideGone, ValueError):
        verdict = b"lost"
    else:
        try:
            give(given)
            exec(compile(before, "before.py", "exec"), space)
            side = Tests(channel, [one for one in space.values() if getattr(one, "__module__", "") == "__main__"])
            space.update({name: side.named(name) for name in names})
            space.update(run_test_class=run_test_class, assertion_ran=lambda: ran.add(True))
            space["statement_ran"] = side.show_changes
            exec(compile(counting(tests), "tests.py", "exec"), space)
            verdict = b"right" if ran and not side.ended else b"wrong"
        except BaseException:
            verdict = b"wrong"
    os.write(verdicts, verdict + b"\n")
    os._exit(0)


BUILTINS = sys.modules["builtins"]
