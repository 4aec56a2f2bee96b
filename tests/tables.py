"""Tests of cheap rows: one test that tries each, where pytest would make a test of each.

A test costs a few milliseconds, and as many in each process that collects it.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import wraps
from itertools import product
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]
Row = tuple[str, dict[str, Any]]
"""Its name, and the arguments that it has."""


def each_row(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Return a decorator like ``pytest.mark.parametrize``, for a test that tries all rows.

    A row that fails is a subtest, which is named as pytest would name its test, and the others are
    tried, too. Each has a ``tmp_path`` and a ``monkeypatch`` of its own; what it wrote is no other
    one's ``capsys``. Other fixtures are those of all rows. As with pytest, a test without rows is
    skipped.
    """
    columns = [one.strip() for one in names.split(",")] if isinstance(names, str) else [*names]
    axis = [*_rows(columns, values, ids)]

    def decorate(test: Test) -> Test:
        axes: list[list[Row]] = [*getattr(test, "axes", ()), axis]
        given: list[str] = [*getattr(test, "given", ()), *columns]
        plain: Test = getattr(test, "row", test)

        @wraps(plain)
        def every_row(*own: Any, subtests: pytest.Subtests, **fixtures: Any) -> None:
            if not all(axes):
                pytest.skip("a table has no rows here")
            for number, chosen in enumerate(product(*axes)):
                name = "-".join(name for name, _ in chosen)
                row = {column: value for _, values in chosen for column, value in values.items()}
                try:
                    with ExitStack() as stack:
                        plain(*own, **row, **_own(fixtures, number, stack))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                    with subtests.test(name):
                        raise

        parameters = dict(inspect.signature(plain).parameters)
        asked = [parameters[name] for name in parameters if name not in given]
        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        signature = inspect.Signature([*asked, subtests])
        vars(every_row).update(axes=axes, given=given, row=plain, __signature__=signature)
        return every_row

    return decorate


def _own(fixtures: dict[str, Any], number: int, stack: ExitStack) -> dict[str, Any]:
    """Return the fixtures of one row."""
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] = Path(own["tmp_path"]) / str(number)
        own["tmp_path"].mkdir()
    if "monkeypatch" in own:
        own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
    if "capsys" in own:
        own["capsys"].readouterr()
    return own


def _rows(
    columns: Sequence[str],
    values: Iterable[Any],
    ids: Iterable[str] | Callable[[Any], object] | None,
) -> Iterator[Row]:
    given = None if ids is None or callable(ids) else [*ids]
    rows = [*values]
    assert given is None or len(given) == len(rows), columns
    name_of = ids if callable(ids) else None
    for number, value in enumerate(rows):
        own = value if isinstance(value, type(pytest.param())) else None
        assert own is None or not own.marks, "a row has no marks"
        cells = own.values if own else tuple(value) if len(columns) > 1 else (value,)
        row = dict(zip(columns, cells, strict=True))
        names = (_named(column, cell, number, name_of) for column, cell in row.items())
        name = (own and own.id) or (given[number] if given else "-".join(names))
        yield str(name), row


def _named(column: str, cell: Any, number: int, name_of: Callable[[Any], object] | None) -> str:
    own = name_of(cell) if name_of else None
    if own is not None:
        return str(own)
    if isinstance(cell, str | bytes):
        return ascii(cell)[1:-1] if isinstance(cell, str) else ascii(cell)
    if cell is None or isinstance(cell, int | float):
        return str(cell)
    return getattr(cell, "__name__", f"{column}{number}")
