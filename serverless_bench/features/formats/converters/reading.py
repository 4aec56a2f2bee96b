"""Parsing of YAML, with limits on size and depth that suffice for configurations.

YAML can describe a large document in few bytes: an alias represents the content of its anchor,
which may contain aliases itself. PyYAML keeps repeated content once, but a traversal or display
of the values visits all repetitions, and merging mappings copies them.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import extra
from serverless_bench.base.user_files import read_text, reason

if TYPE_CHECKING:
    import yaml

_MAX_BYTES: Final = 32 << 10
"""PyYAML takes up to 50 us per byte; the longest samples of warp and sai3-bench have 10 KB."""
_MAX_EXPANDED: Final = 1 << 20
"""Maximum number of values and characters, with all aliases expanded."""
_MAX_DEPTH: Final = 12
_MAX_KEY: Final = 256
_MAX_NUMBER: Final = 64
"""Maximum length of a key, and of a number."""
_NUMBERS: Final = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))


def load_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises
    ------
    UsageError
        If it cannot be read, holds anything other than a mapping, is a template, or exceeds the
        limits on size and depth.
    PluginError
        If PyYAML is not installed.
    """
    with extra("convert", "sbench convert"):
        import yaml
    try:
        text = read_text(path, most_bytes=_MAX_BYTES)
        _refuse_templates(path, text)
        documents = _documents(path, yaml.SafeLoader(text))
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read {path}: {reason(exc)}") from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        problem = getattr(exc, "problem", None) or "it cannot be parsed"
        raise UsageError(f"{path}{line} is not YAML: {problem}") from exc
    except RecursionError:
        raise _too_deep(path) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        content = f"{len(documents)} documents" if len(documents) != 1 else "no mapping"
        raise UsageError(
            f"{path} holds {content}", hint="a configuration is a single mapping in YAML"
        )
    return documents[0]


def _documents(path: Path, loader: "yaml.SafeLoader") -> list[Any]:
    """Return all documents, each measured before construction."""
    documents = []
    while loader.check_node():
        if (node := loader.get_node()) is not None:
            _Measure(path).expanded(node, 0)
            try:
                documents.append(loader.construct_document(node))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
                # PyYAML passes on Python's exceptions for dates, numbers and booleans.
                raise UsageError(f"{path} has an invalid value: {exc}") from exc
    return documents


class _Measure:
    """Computes the expanded size of a document without expanding its aliases."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sizes: dict[int, int] = {}

    def expanded(self, node: "yaml.Node", depth: int) -> int:
        """Return the number of values and characters of a node, with its content."""
        if depth > _MAX_DEPTH:
            # This also stops recursive documents.
            raise _too_deep(self._path)
        if id(node) not in self._sizes:
            self._sizes[id(node)] = self._size_of(node, depth)
        if self._sizes[id(node)] > _MAX_EXPANDED:
            raise self._refused(node, "its aliases represent more than a million values")
        return self._sizes[id(node)]

    def _size_of(self, node: "yaml.Node", depth: int) -> int:
        if isinstance(node.value, str):
            if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER:
                raise self._refused(node, f"a number has {len(node.value)} characters")
            if re.search("[\ud800-\udfff]", node.value):
                raise self._refused(node, "a text has half of a character")
            return 1 + len(node.value)
        size = 1
        for item in node.value:
            # Items of a mapping are pairs of key and value.
            pair = item if isinstance(item, tuple) else (item,)
            key = pair[0].value
            if len(pair) > 1 and not (isinstance(key, str) and len(key) <= _MAX_KEY):
                raise self._refused(item[0], f"a key is not a text of up to {_MAX_KEY} characters")
            size += sum(self.expanded(child, depth + 1) for child in pair)
        return size

    def _refused(self, node: "yaml.Node", problem: str) -> UsageError:
        line = 0 if node.start_mark is None else node.start_mark.line + 1
        return UsageError(f"{self._path}, line {line}: {problem}")


def _too_deep(path: Path) -> UsageError:
    return UsageError(f"{path}: mappings and lists are nested more than {_MAX_DEPTH} deep")


def _refuse_templates(path: Path, text: str) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.search(r"\{\{|\$\{", re.sub(r"(^|\s)#.*", "", line))
        if match is not None:
            raise UsageError(
                f"{path}, line {number} has a variable ({match[0]}), and variables are not"
                " filled in",
                hint="write the values into a copy of the file",
            )
