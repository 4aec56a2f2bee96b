"""Read a configuration in YAML, of a size and a depth that configurations have.

YAML can say much with little: an alias stands for all that its anchor holds, and may hold
aliases itself. PyYAML keeps what is named twice once, but whoever goes through the values, or
shows one, goes through all of them; merging mappings copies them.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.errors import UsageError
from serverless_bench.plugins import extra
from serverless_bench.user_files import read_text, reason

if TYPE_CHECKING:
    import yaml

_TEMPLATE: Final = re.compile(r"\{\{|\$\{")
_MAX_BYTES: Final = 32 << 10
"""PyYAML takes up to 50 us a byte; the longest samples of warp and sai3-bench have 10 KB."""
_MAX_EXPANDED: Final = 1 << 20
"""Values and their characters, with all that aliases stand for."""
_MAX_DEPTH: Final = 12
_MAX_KEY: Final = 256
_MAX_NUMBER: Final = 64
"""Characters of a key, and of a number."""
_NUMBERS: Final = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the one mapping that a YAML file holds.

    Raises
    ------
    UsageError
        If it cannot be read, holds something else, is a template, or is larger or deeper than
        configurations are.
    PluginError
        If PyYAML is not installed.
    """
    with extra("convert", "sbench convert"):
        import yaml  # noqa: PLC0415 - an extra
    try:
        text = read_text(path, most_bytes=_MAX_BYTES)
        _refuse_templates(path, text)
        documents = _documents(path, yaml.SafeLoader(text))
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read {path}: {reason(exc)}") from exc
    except yaml.YAMLError as exc:
        where = getattr(exc, "problem_mark", None)
        line = "" if where is None else f", line {where.line + 1}"
        problem = getattr(exc, "problem", None) or "it cannot be parsed"
        raise UsageError(f"{path}{line} is not YAML: {problem}") from exc
    except RecursionError:
        raise _too_deep(path) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        what = f"{len(documents)} documents" if len(documents) != 1 else "no mapping"
        raise UsageError(f"{path} holds {what}", hint="a configuration is one mapping of YAML")
    return documents[0]


def _documents(path: Path, loader: "yaml.SafeLoader") -> list[Any]:
    """Return all documents; each is looked through before anything is made of it."""
    found = []
    while loader.check_node():
        if (node := loader.get_node()) is not None:
            _Measure(path).expanded(node, 0)
            try:
                found.append(loader.construct_document(node))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
                # PyYAML lets through what Python says of dates, numbers and truths.
                raise UsageError(f"{path} has a value that cannot be: {exc}") from exc
    return found


class _Measure:
    """How large a document is with all that its aliases stand for, found without doing it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[int, int] = {}

    def expanded(self, node: "yaml.Node", depth: int) -> int:
        """Return the values and characters of a node, and of all that is in it."""
        if depth > _MAX_DEPTH:
            # Also what holds itself.
            raise _too_deep(self._path)
        if id(node) not in self._known:
            self._known[id(node)] = self._of(node, depth)
        if self._known[id(node)] > _MAX_EXPANDED:
            raise self._refused(node, "its aliases stand for more than a million values")
        return self._known[id(node)]

    def _of(self, node: "yaml.Node", depth: int) -> int:
        if isinstance(node.value, str):
            if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER:
                raise self._refused(node, f"a number has {len(node.value)} characters")
            return 1 + len(node.value)
        size = 1
        for one in node.value:
            # Of a mapping they are keys and values.
            pair = one if isinstance(one, tuple) else (one,)
            key = pair[0].value
            if len(pair) > 1 and not (isinstance(key, str) and len(key) <= _MAX_KEY):
                raise self._refused(one[0], f"a key is no text of up to {_MAX_KEY} characters")
            size += sum(self.expanded(each, depth + 1) for each in pair)
        return size

    def _refused(self, node: "yaml.Node", why: str) -> UsageError:
        line = 0 if node.start_mark is None else node.start_mark.line + 1
        return UsageError(f"{self._path}, line {line}: {why}")


def _too_deep(path: Path) -> UsageError:
    return UsageError(f"{path}: more than {_MAX_DEPTH} mappings and lists stand in one another")


def _refuse_templates(path: Path, text: str) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        match = _TEMPLATE.search(re.sub(r"(^|\s)#.*", "", line))
        if match is not None:
            raise UsageError(
                f"{path}, line {number} has a variable ({match[0]}), and they are not filled in"
                " here",
                hint="write the values into a copy of the file",
            )
