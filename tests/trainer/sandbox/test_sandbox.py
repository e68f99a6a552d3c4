"""The sandbox: hostile programs end inside their limits and leave nothing; others do not notice it."""

import ctypes
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import Signals

import pytest
from places import DATA
from waiting import wait_until

from scalerl.sandbox import Limits, Sandbox, SandboxFailed, SandboxTimedOut, SandboxUnavailable, isolation, sandbox
from scalerl.sandbox.processes import descendants, shared_out_bytes
from scalerl.sandbox.system_calls import DENIED, seccomp_filter

HOSTILE = DATA / "hostile"
TIGHT = Limits(wall_s=10.0, cpu_s=0.5, memory_mb=256, processes=16, output_kb=256, file_mb=16, files=500)
PR_SET_CHILD_SUBREAPER = 36

# How each one ends: the limit it is killed for, the signal that ends it, or its exit code and what it says it got.
ENDS = {
    "busy_threads": "cpu",
    "closes_channel": (0, ""),
    "deep_recursion": "SIGSEGV",
    "double_fork": (0, "parent done"),
    "escapes_namespaces": (0, "[]"),
    "floods_stderr": "output",
    "floods_stdout": "output",
    "fork_bomb": "cpu",
    "huge_file": (1, "True"),
    "huge_power": "cpu",
    "ignores_signals": "wall",
    "infinite_loop": "cpu",
    "kills_everyone": "SIGTERM",
    "many_files": "files",
    "many_large_files": (1, ""),
    "memory_bomb": "cpu",
    "memory_in_many_processes": "memory",
    "multiplies_strings": (1, ""),
    "network": (0, "[]"),
    "reads_secrets": (0, "[]"),
    "segfault": "SIGSEGV",
    "setsid_daemon": (0, "parent done"),
    "sleeps": "wall",
    "stops_itself": "wall",
    "symlink_tricks": (0, "[]"),
    "traces": (0, "[]"),
    "writes_outside": (0, "[]"),
    "writes_proc": (0, "[]"),
}


@pytest.fixture(scope="module", params=["bubblewrap", "namespaces"])
def box(request):
    return make_box(request.param)


@pytest.fixture(params=["bubblewrap", "namespaces"])
def box_without_root(request, monkeypatch):
    """As any other user gets it, with a user namespace."""
    monkeypatch.setattr(isolation, "is_real_root", lambda: False)
    return make_box(request.param)


def make_box(name):
    try:
        return Sandbox(use=name)
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def adopts_orphans(tmp_path, monkeypatch):
    """Whatever outlives its parents becomes a child of the tests; folders are made where they can be counted."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fds = len(os.listdir("/proc/self/fd"))
    OTHERS.clear()
    OTHERS.update(process.pid for generation in descendants(os.getpid()) for process in generation)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert family() == []
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == fds


OTHERS: set[int] = set()
"""Processes that earlier tests have left on purpose, such as the worker of the math verifier."""


def family():
    """What the test has started and what these have, a generation a list."""
    own = ([one for one in generation if one.pid not in OTHERS] for generation in descendants(os.getpid()))
    return [generation for generation in own if generation]


def limits_of(name):
    """Time enough for the other limits to come first, also on a busy machine."""
    return TIGHT.model_copy(update={"wall_s": 1.0}) if ENDS[name] == "wall" else TIGHT


def run_hostile(box, name):
    return box.run((HOSTILE / f"{name}.py").read_text(), stdin="", limits=limits_of(name))


def ending(finished):
    if finished.limit is not None:
        return finished.limit
    if finished.signal is not None:
        return Signals(finished.signal).name
    return finished.exit_code, finished.stdout.strip()


def test_there_are_at_least_twenty_hostile_programs_and_each_is_run():
    assert sorted(ENDS) == sorted(path.stem for path in HOSTILE.glob("*.py"))
    assert len(ENDS) >= 20


@pytest.mark.timeout(240)  # programs without end sleep for a quarter of an hour at least
@pytest.mark.parametrize("name", sorted(ENDS))
def test_a_hostile_program_ends_by_its_limits_and_the_next_one_runs(box, name):
    finished = run_hostile(box, name)
    assert ending(finished) == ENDS[name], finished
    assert len(finished.stdout) + len(finished.stderr) <= 2 * 256 * 1024
    assert family() == []
    assert box.run("print(6 * 7)", stdin="", limits=TIGHT).stdout == "42\n"


@pytest.mark.parametrize(
    "name", ["escapes_namespaces", "kills_everyone", "reads_secrets", "traces", "writes_outside", "writes_proc"]
)
def test_without_root_outside_the_program_has_no_power_inside_either(box_without_root, name):
    assert ending(run_hostile(box_without_root, name)) == ENDS[name]


@pytest.mark.parametrize("name", ["fork_bomb", "memory_in_many_processes", "setsid_daemon", "double_fork"])
def test_without_root_outside_crowds_are_ended_too(box_without_root, name):
    # Root in a user namespace is above RLIMIT_NPROC; then the count from outside ends the program.
    assert ending(run_hostile(box_without_root, name)) in (ENDS[name], "processes")


def test_a_program_finds_a_clean_python(box, monkeypatch):
    monkeypatch.setenv("SECRET", "8675309")
    program = """
import os, sys
print(__name__, sys.argv, sorted(os.environ), os.listdir("."), input(), sys.stdin.read())
assert os.getuid() != 0
try:
    import pydantic
except ModuleNotFoundError as error:
    print(error, file=sys.stderr)
sys.exit(3)
"""
    finished = box.run(program, stdin="größe\nrest", limits=TIGHT)
    names = "['HOME', 'LC_ALL', 'OPENBLAS_NUM_THREADS', 'PATH', 'PYTHONHASHSEED', 'PYTHONINTMAXSTRDIGITS', 'TMPDIR']"
    assert finished.stdout.replace("'PWD', ", "") == f"__main__ ['program.py'] {names} [] größe rest\n"
    assert finished.stderr == "No module named 'pydantic'\n"
    assert (finished.exit_code, finished.signal, finished.limit) == (3, None, None)


def test_a_program_may_use_numpy_and_may_not_change_it(box):
    program = """
import numpy
print(int(numpy.array([2, 3]) @ numpy.array([5, 7])))
open(numpy.__file__, "a")
"""
    finished = box.run(program, stdin="", limits=Limits())
    assert finished.stdout == "31\n"
    assert "Error: [Errno" in finished.stderr


def test_a_program_holds_its_three_standard_files_however_many_the_trainer_has_open(box):
    many = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]
    program = """
import os
held = []
for fd in range(1000):
    try:
        os.fstat(fd)
        held.append(fd)
    except OSError:
        pass
print(held)
"""
    try:
        assert box.run(program, stdin="", limits=TIGHT).stdout == "[0, 1, 2]\n"
    finally:
        for fd in many:
            os.close(fd)


def test_what_a_program_prints_comes_back_whole_up_to_the_limit(box):
    limits = Limits(output_kb=64)
    full = box.run("import sys; sys.stdout.write('x' * 65536); sys.stderr.write('y' * 65536)", stdin="", limits=limits)
    assert (full.stdout, full.stderr, full.limit) == ("x" * 65536, "y" * 65536, None)
    over = box.run("print('x' * 65536)", stdin="", limits=limits)
    assert (over.stdout, over.limit) == ("x" * 65536, "output")
    broken = box.run("import os; os.write(1, b'a\\xffb')", stdin="", limits=limits)
    assert broken.stdout == "a\ufffdb"


def test_a_long_input_need_not_be_read(box):
    text = "0123456789" * 500_000
    assert box.run("import sys; print(len(sys.stdin.read()))", stdin=text, limits=TIGHT).stdout == "5000000\n"
    assert box.run("print(1)", stdin=text, limits=TIGHT).stdout == "1\n"


def test_sets_of_strings_have_the_same_order_in_every_run(box):
    program = "print({str(n) for n in range(100)})"
    assert len({box.run(program, stdin="", limits=TIGHT).stdout for _ in range(3)}) == 1


def test_exactly_as_many_threads_as_the_limit_says(box):
    program = """
import threading, time
count = 1
try:
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        count += 1
except RuntimeError:
    print(count)
"""
    assert box.run(program, stdin="", limits=Limits(processes=5)).stdout == "5\n"


def test_memory_below_the_limit_is_given_and_above_it_refused(box):
    program = "import sys; print(len(bytearray(b'x') * (int(input()) << 20)) >> 20)"
    limits = Limits(memory_mb=256)
    assert box.run(program, stdin="180", limits=limits).stdout == "180\n"
    refused = box.run(program, stdin="260", limits=limits)
    assert refused.exit_code == 1
    assert refused.stderr.endswith("MemoryError\n")


def test_pages_that_forked_processes_share_count_once(box):
    program = """
import os, time
hoard = bytearray(b"x") * (120 << 20)
os.fork()
os.fork()
time.sleep(0.4)
print("done", flush=True)
time.sleep(0.2)
"""
    finished = box.run(program, stdin="", limits=TIGHT)  # resident: four times 120 MiB, of which one is there
    assert (finished.stdout, finished.limit) == ("done\n" * 4, None)


def command_of(pid: int | str) -> bytes:
    """The command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.parametrize("name", ["memory_bomb", "memory_in_many_processes", "fork_bomb", "multiplies_strings"])
def test_bombs_never_hold_much_more_than_their_memory(box, name):
    peak = 0
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_hostile, box, name)
        while not running.done():
            processes = [process for generation in family() for process in generation]
            # A child that has not called exec yet shares this process's own memory, which is not the bomb's.
            peak = max(peak, shared_out_bytes([one for one in processes if command_of(one.pid) != command_of("self")]))
            time.sleep(0.005)
    # Interpreter and supervisor take 20 MB; between two looks 50 ms apart two cores can write some 200 MB.
    assert peak < (256 + 20 + 200) << 20
    if name != "multiplies_strings":  # which is refused its memory at once, often before the first look
        assert peak > 5 << 20


def test_several_programs_run_at_a_time_and_do_not_notice_each_other(box):
    def square(n):
        return box.run(f"import time; time.sleep(0.2); print({n} ** 2)", stdin="", limits=Limits()).stdout

    with ThreadPoolExecutor(5) as pool:
        bomb = pool.submit(run_hostile, box, "fork_bomb")
        squares = list(pool.map(square, range(12)))
    assert squares == [f"{n * n}\n" for n in range(12)]
    assert bomb.result().limit == "cpu"


def test_files_outside_are_neither_read_nor_written(box, tmp_path_factory):
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("8675309")
    for mode in ("r", "w", "a"):
        finished = box.run(f"print(open({str(secret)!r}, {mode!r}).read())", stdin="", limits=TIGHT)
        assert "FileNotFoundError" in finished.stderr
    assert secret.read_text() == "8675309"


SLOWED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {
    "niceness": lambda who: os.setpriority(os.PRIO_PROCESS, who, 19),
    "niceness of the user": lambda who: os.setpriority(os.PRIO_USER, 0, 19),
    "class": lambda who: os.sched_setscheduler(who, os.SCHED_IDLE, os.sched_param(0)),
    "parameters": lambda who: os.sched_setparam(who, os.sched_param(0)),
    "processors": lambda who: os.sched_setaffinity(who, [min(os.sched_getaffinity(0))]),
    "disk": lambda who: libc.syscall(251, 1, who, 3 << 13) and os.strerror(1 / 0),
}
done = []
for name, call in calls.items():
    for who in (1, os.getppid()):
        try:
            call(who)
            done.append((name, who))
        except (OSError, ZeroDivisionError):
            pass
os.sched_setaffinity(0, os.sched_getaffinity(0))  # one's own may be set
print(sorted({*done}))
"""


def test_a_program_cannot_slow_its_supervisor(box):
    assert box.run(SLOWED, stdin="", limits=TIGHT).stdout == "[]\n"


def test_without_root_outside_a_program_cannot_slow_its_supervisor_either(box_without_root):
    assert box_without_root.run(SLOWED, stdin="", limits=TIGHT).stdout == "[]\n"


def test_a_listening_server_hears_nothing(box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        program = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        assert "PermissionError" in box.run(program, stdin="", limits=TIGHT).stderr
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_trainer_that_is_killed_takes_its_programs_along(box):
    trainer = f"""
from scalerl.sandbox import Limits, Sandbox
sandbox = Sandbox(use={box.isolation!r})
print("ready", flush=True)
sandbox.run("while True: pass", stdin="", limits=Limits(wall_s=60, cpu_s=60))
"""
    here = os.environ | {"TMPDIR": tempfile.gettempdir()}
    with subprocess.Popen([sys.executable, "-c", trainer], stdout=subprocess.PIPE, env=here) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        wait_until(lambda: len(descendants(process.pid)) >= 2, "sandbox and its program", every_s=0.01)
        time.sleep(0.3)
        process.kill()
    wait_until(reaped, "the end of every process", every_s=0.01)


def reaped():
    """Nothing is left, once children adopted dead are put away."""
    for child in (process for generation in family()[:1] for process in generation):
        os.waitpid(child.pid, os.WNOHANG)
    return family() == []


def test_a_supervisor_that_is_killed_is_a_failure_of_the_sandbox(box):
    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_hostile, box, "sleeps")
        wait_until(lambda: len(family()) >= 3, "sandbox and program", every_s=0.01)
        os.kill(family()[1][0].pid, signal.SIGKILL)
        with pytest.raises(SandboxFailed):
            running.result()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # it only sleeps
def test_a_program_ends_in_time_although_another_child_holds_the_same_pipes(box):
    def fork_while_it_runs():
        wait_until(lambda: len(family()) >= 3, "sandbox and program", every_s=0.01)
        if (child := os.fork()) == 0:
            time.sleep(100)
            os._exit(0)
        return child

    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_hostile, box, "sleeps")
        child = fork_while_it_runs()
        assert running.result().limit == "wall"
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_limits_the_trainer_runs_under_itself_are_kept_where_they_are_tighter(box):
    trainer = f"""
import resource
from scalerl.sandbox import Limits, Sandbox
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
program = "import resource; print(resource.getrlimit(resource.RLIMIT_FSIZE))"
print(Sandbox(use={box.isolation!r}).run(program, stdin="", limits=Limits(file_mb=2)).stdout)
"""
    printed = subprocess.run([sys.executable, "-c", trainer], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str((1 << 20, 1 << 20))


def test_a_program_that_is_not_started_in_time_is_a_time_out_of_the_sandbox(box, monkeypatch):
    monkeypatch.setattr(sandbox, "START_UP_S", 0.0)
    with pytest.raises(SandboxTimedOut, match="within 0 s"):
        box.run("pass", stdin="", limits=TIGHT)


def test_the_strongest_isolation_that_works_is_taken(monkeypatch):
    assert Sandbox().isolation in ("bubblewrap", "namespaces")
    monkeypatch.setenv("PATH", "")
    assert Sandbox().isolation == "namespaces"


def test_a_machine_that_cannot_isolate_is_refused_with_every_reason(monkeypatch):
    monkeypatch.setattr(isolation, "_command", lambda *_: ["/bin/false"])
    with pytest.raises(SandboxUnavailable) as refusal:
        Sandbox()
    message = str(refusal.value)
    assert re.search(r"bubblewrap: no program was started.*\n  namespaces: no program was started", message)


ALLOWED, KILLED, REFUSED, NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h


def verdict(code, architecture, number, argument=0):
    """What a filter says to a system call: the four kinds of instruction it uses, as bpf(4) describes them."""
    data = struct.pack("=IIQQ", number, architecture, 0, argument)
    instructions = list(struct.iter_unpack("=HBBI", code))
    at = loaded = 0
    while True:
        operation, if_true, if_false, value = instructions[at]
        at += 1
        if operation == 0x20:
            loaded = struct.unpack_from("=I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: loaded & value != 0}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_the_calls_it_names_and_no_others(machine):
    if not Path(HEADERS[machine]).exists():
        pytest.skip(f"no {HEADERS[machine]} (Debian linux-libc-dev)")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\b", Path(HEADERS[machine]).read_text())
    numbers = {name: int(number) for name, number in defined}
    code = seccomp_filter(machine)
    refused = {n for n, number in numbers.items() if verdict(code, AUDIT_ARCH[machine], number) == REFUSED}
    expected = set(DENIED)
    assert refused == expected & set(numbers)
    assert expected - set(numbers) <= {"memfd_secret", "mount_setattr"}  # younger than some headers
    asked = {"architecture": AUDIT_ARCH[machine]}
    assert verdict(code, **asked, number=numbers["clone3"]) == NOT_THERE
    assert verdict(code, **asked, number=numbers["clone"], argument=0x10000000 | 17) == REFUSED
    assert verdict(code, **asked, number=numbers["clone"], argument=17) == ALLOWED
    for name in ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"):
        assert verdict(code, **asked, number=numbers[name], argument=1) == REFUSED
        assert verdict(code, **asked, number=numbers[name], argument=0) == ALLOWED
    assert verdict(code, **asked, number=numbers["read"]) == ALLOWED
    assert verdict(code, **asked, number=0x40000000 | numbers["read"]) == REFUSED
    assert verdict(code, architecture=0x40000003, number=numbers["read"]) == KILLED  # i386


def test_a_machine_without_a_table_of_system_calls_is_refused():
    with pytest.raises(ValueError, match=r"'riscv64'.*aarch64"):
        seccomp_filter("riscv64")
