"""What the tests that Python starts have in common: `pytest test/kernel [--build DIRECTORY] [--long] [-k WORDS]`."""

import functools
import pathlib
import signal

import pytest

import netns


def pytest_addoption(parser):
    parser.addoption("--build", default="build-test", help="whose programs are tried (build-test)")
    parser.addoption("--long", action="store_true", help="those that are marked long, too")


def pytest_configure():
    # Namespaces and programs are taken down, however the tests are told to stop.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: pytest.exit(f"signal {got}", 128 + got))


@pytest.fixture(scope="session", autouse=True)
def job_key(tmp_path_factory):
    """All programs of a session belong to one job, unless a test says otherwise."""
    netns.make_key(tmp_path_factory.mktemp("key"))


def pytest_generate_tests(metafunc):
    cases = getattr(metafunc.function, "cases", ())
    if cases:
        metafunc.parametrize("case", cases, indirect=True, ids=str)


def pytest_collection_modifyitems(config, items):
    if config.getoption("--long"):
        return
    left = [item for item in items if is_long(item)]
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)


def is_long(item):
    mark = item.get_closest_marker("long")
    return mark is not None and (not mark.args or item.callspec.params["case"].driver in mark.args)


@functools.cache
def no_namespaces():
    return netns.possible()


@pytest.fixture(scope="session")
def build(request):
    return pathlib.Path(request.config.getoption("--build")).resolve()


@pytest.fixture
def case(request):
    return request.param


@pytest.fixture
def place(case):
    """Where the test runs: it is made before and taken down afterwards, with all programs that were started in it."""
    if case.kind not in (netns.Loopback, netns.OneHost) and no_namespaces():
        pytest.skip(no_namespaces())
    with case.kind(**case.settings) as made:
        yield made


@pytest.fixture
def driver(case):
    return case.driver
