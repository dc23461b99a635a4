"""How a test says where it runs, and with which drivers."""

import dataclasses
from collections.abc import Callable

import netns


@dataclasses.dataclass(frozen=True)
class Case:
    driver: str | None
    kind: Callable  # makes the place (tools/netns.py, tools/railnet.py)
    settings: dict

    def __str__(self):
        words = [self.driver or "", *(f"{name}={value}" for name, value in self.settings.items())]
        return " ".join(filter(None, words)).replace(" ", ",") or self.kind.__name__.lower()


def case(*drivers, kind=netns.Pair, **settings):
    """The test is one for each of the drivers, or a single one, in a place of that kind. Said twice, it is both."""
    def mark(function):
        cases = [Case(driver, kind, settings) for driver in drivers or (None,)]
        function.cases = cases + getattr(function, "cases", [])
        return function
    return mark
