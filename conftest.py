"""Rules and fixtures of all tests: those in ``tests/``, and those in a folder of a feature."""

import fcntl
import gc
import os
import shutil
import signal
import socket
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from hypothesis import settings

from serverless_bench.cli.main import main
from tests import azurite as azure
from tests import failures, selection, twice
from tests.clouds.aws_clients import close_clients
from tests.commands.command import Call, Sbench, end_started
from tests.commands.other_user import Stranger, stranger
from tests.commands.processes import Family
from tests.house.removed import skip_tests_of_removed_features
from tests.stores import servers
from tests.stores.servers import Server

# Hundreds of processes load the same modules: the first one compiles them for all.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Each session of botocore would read the descriptions of its services again: 0.1 s for a client.
botocore.session.create_loader = cache(botocore.session.create_loader)

# Tests assert no time: two run side by side, and a machine may be busy. Random examples must not
# fail an unrelated submission: in CI they are derived from the test. Elsewhere, and in `make full`,
# they are drawn again each time.
settings.register_profile("sbench", deadline=None, derandomize="CI" in os.environ)
# The result for a mutant is reproducible (`make mutants`), and takes a second.
settings.register_profile(
    "mutants", deadline=None, derandomize=True, max_examples=25, database=None
)
settings.load_profile("sbench")


MOST_TIMED = 25
"""Number of tests that may judge by time in `make test`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="accept the reports as they are now"
    )
    parser.addoption(
        "--only-changed", action="store_true", help="leave out tests of parts that did not change"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(failures)
    skip_tests_of_removed_features()
    # Scripts ignore Ctrl-C in the background, nohup ignores SIGHUP, and children inherit both.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


REMOVAL = "test_removal.py"
MATRICES = tuple(
    f"test_fault_matrix_{executor}.py" for executor in ("lithops", "lambda", "workers", "dask")
)
FIRST = ("test_stack.py", *MATRICES, "test_readme.py", "test_search.py")
"""Files with long tests: if started late, one of them would run alone at the end. Two workers have
the stack and the matrices, which mostly wait, while the others keep the processors busy.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let one worker load the tests first, so that the others find compiled modules.

    In a new clone it takes longer to compile the tests than to load them, and every worker would.
    """
    with Path(__file__).open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        # Objects of the collection stay to the end: looking for garbage among them takes seconds.
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    check_tiers(items)
    for item in items:
        if (paths := selection.implied(item.path)) and not item.get_closest_marker("on_change"):
            item.add_marker(pytest.mark.on_change(*paths))
    if config.getoption("only_changed"):
        unneeded = [item for item in items if not is_needed(item)]
        config.hook.pytest_deselected(items=unneeded)
        items[:] = [item for item in items if item not in set(unneeded)]
    items.sort(key=places(items).__getitem__)
    for item in items:
        if item.path.name in MATRICES:
            item.add_marker(pytest.mark.xdist_group("fault matrices"))
        elif stays_with_its_file(item):
            path = item.path.relative_to(item.config.rootpath)
            item.add_marker(pytest.mark.xdist_group(str(path)))


def is_needed(item: pytest.Item) -> bool:
    """Tell whether a test runs: each does without the mark, others if their part changed."""
    marks = list(item.iter_markers("on_change"))
    return not marks or _is_changed(item.path, tuple(path for mark in marks for path in mark.args))


@cache
def _is_changed(path: Path, parts: tuple[str, ...]) -> bool:
    return bool(selection.reason(path, parts, selection.change()))


def check_tiers(items: list[pytest.Item]) -> None:
    """Refuse a collection with too many tests that judge by time."""
    timed = [item for item in items if item.get_closest_marker("timing")]
    if not all(map(selection.judges_by_time, {item.path for item in timed})):
        raise pytest.UsageError("write pytest.mark.timing: tests.selection looks for it")
    timed = [item for item in timed if not item.get_closest_marker("full")]
    if len(timed) > MOST_TIMED:
        names = " ".join(item.nodeid for item in timed)
        raise pytest.UsageError(f"{len(timed)} tests judge by time, {MOST_TIMED} may: {names}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in twice.REPEATED:
        terminalreporter.write_line(line)


def places(items: list[pytest.Item]) -> dict[pytest.Item, tuple[float, ...]]:
    """Return when each test begins, by its file.

    Files of unit tests, which keep a processor busy, are spread among the others, which mostly
    wait. A removal comes last.
    """
    files = dict.fromkeys(item.path for item in items if item.path.name not in FIRST)
    among: dict[Path, tuple[float, ...]] = {}
    for is_unit in (False, True):
        chosen = [path for path in files if selection.is_unit(path) == is_unit]
        among |= {path: (1, n / len(chosen)) for n, path in enumerate(chosen)}
    among |= {path: (2,) for path in files if path.name == REMOVAL}
    return {item: among.get(item.path) or (0, FIRST.index(item.path.name)) for item in items}


def stays_with_its_file(item: pytest.Item) -> bool:
    """Tell whether one worker takes all tests of the file; any other test goes by itself.

    Otherwise each worker would repeat the file's setup. And unit tests are so short that
    distributing them one by one would cost more than it balances.
    """
    if not isinstance(item, pytest.Function) or selection.is_unit(item.path):
        return True
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    return any(one[-1].scope in {"module", "class", "package"} for one in fixtures)


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hide the user's environment and files from tests."""
    for name in list(os.environ):
        ours = ("AWS_", "AZURE_", "GOOGLE_", "SBENCH_", "LITHOPS_")
        if name.startswith(ours) or name.lower().endswith("_proxy"):
            del os.environ[name]
    # Progress lines, which a busy machine prints now and then, are not expected by most tests.
    os.environ["SBENCH_PROGRESS"] = "none"
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest) -> None:
    """Unit tests that open a connection are integration tests."""

    def refuse(*_: object) -> None:
        raise AssertionError("a unit test opened a connection")

    if selection.is_unit(request.path):
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture(autouse=True)
def no_left_overs() -> Iterator[None]:
    """Check that a test leaves no process, which could affect the next one, and no connection."""
    yield
    end_started()
    close_clients()


@pytest.fixture(scope="session")
def store_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def embedded(store_directory: Path) -> Iterator[Server]:
    """The embedded store, kept by a lease of the test session."""
    with servers.embedded(store_directory) as server:
        yield server


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.rclone(tmp_path_factory.mktemp("rclone")) as server:
        yield server


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with azure.azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """A prefix of the bucket that no other test has."""
    return f"{uuid.uuid4().hex}/"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


@pytest.fixture
def sbench(tmp_path: Path, embedded: Server) -> Sbench:
    """The command in an empty directory, with the session's embedded store."""
    return Sbench(tmp_path, embedded.environment)


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """The command in this process, in an empty directory and without a store."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def family() -> Iterator[Family]:
    """All processes that a test starts with this mark in their environment; the rest ends with the
    test."""
    members = Family()
    yield members
    for process in members.members():
        process.kill()


@pytest.fixture(scope="module")
def nobody() -> Iterator[Stranger]:
    """Another user of this machine."""
    with stranger() as found:
        yield found


@pytest.fixture(scope="module")
def open_place() -> Iterator[Path]:
    """A directory that anybody can enter, so that its location protects no file."""
    place = Path(tempfile.mkdtemp(prefix="sbench-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)
