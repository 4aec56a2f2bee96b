"""Measures of the size, the structure and the language of the package, from its source."""

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
NAME: Final = "serverless_bench"
PACKAGE: Final = REPOSITORY / NAME
TESTS: Final = REPOSITORY / "tests"
_LISTS: Final = frozenset({PACKAGE / "cli" / "commands", PACKAGE / "features" / "studies"})
"""Folders of files of one kind."""
_UNCOUNTED_PAGES: Final = (
    *("docs/decisions", "CHANGELOG.md"),
    "serverless_bench/features/studies",
)
_TABLE: Final = re.compile(r"^<!-- table .*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
"""A table that `make tables` writes into a page."""
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_FRAGMENT: Final = re.compile(r"^(What|Of|That|Whose|Who|Which|As|If so|Why|How)\b")
"""First words of comments and docstrings that are not sentences."""
_QUESTION: Final = re.compile(
    r"^#+ (?:What|Where|When|Which|Who|Why|How|Once|If|As)\b", re.MULTILINE
)
"""A heading that is a clause, and not the words that a reader searches for."""
_ON_PAGES: Final = {
    "what": "what",
    "one": "one",
    "refuse": "refuse refuses refused refusing refusal refusals",
    "tell": "tell tells told telling",
    "say": "say says said saying",
    "hold": "hold holds held holding",
}
"""Words that pages have more often than those of others, with their forms."""
_FREQUENT: Final = 300
"""Number of our most frequent words that are compared with the peers'."""
_TOO_OFTEN: Final = 4.0
"""Times as often as in the peer that has a word most."""
_VAGUE_NAMES: Final = ("found", "one", "there", "known", "each")


def measures() -> Mapping[str, float]:
    """Return every measure by its name in ``ceilings.toml``."""
    # Features are counted from a module of its own, which uses this one.
    from tests.house.features import feature_of, of_the_core
    from tests.house.outside import lines_outside

    arrows = {arrow for arrow in _arrows() if "features" not in arrow}
    core = {path: tree for path, tree in trees().items() if feature_of(path) is None}
    folders = Counter(path.parent for path in trees() if path.parent not in _LISTS)
    words, texts = _words(), _texts()
    total = sum(words.values())
    return {
        "statements": sum(is_statement(node) for node in _nodes()),
        "statements_of_the_core": sum(
            is_statement(node) for tree in core.values() for node in ast.walk(tree)
        ),
        "lines_from_the_core_to_features": len(of_the_core()),
        "lines_outside_of_a_feature": max(lines_outside().values()),
        "syntax_nodes": len(_nodes()),
        "members_of_a_workload": len(_members("job/workload.py", "Workload")),
        "fields_of_a_load": len(_members("job/workload.py", "Load", ast.AnnAssign)),
        "settings_of_the_core": len(_members("job/settings.py", "JobSettings", ast.AnnAssign)),
        "rooms": len({_room(path) for path in core if len(_inside(path).parts) > 1} - {"features"}),
        "arrows": len(arrows),
        "arrows_both_ways": sum((target, room) in arrows for room, target in arrows) / 2,
        "arrows_upwards": sum(target == NAME for _, target in arrows),
        "class_names_defined_twice": sum(n > 1 for n in _class_names().values()),
        "modules_at_the_root": len(list(PACKAGE.glob("*.py"))),
        "noqa": sum(path.read_text("utf-8").count("# noqa") for path in trees()),
        "files_in_one_folder": max(folders.values()),
        "modules_flat_in_tests": len(list(TESTS.glob("*.py"))),
        "words_of_markdown": sum(len(written_by_hand(page).split()) for page in _pages()),
        "headings_that_ask": sum(len(_QUESTION.findall(written_by_hand(p))) for p in _pages()),
        **_on_pages(),
        "what_per_10000_words": 1e4 * words["what"] / total,
        "one_per_10000_words": 1e4 * words["one"] / total,
        "overused_words": len(overused_words()),
        "fragments_percent": 100 * sum(map(bool, map(_FRAGMENT.match, texts))) / len(texts),
        "vague_local_names": sum(_stored_names()[name] for name in _VAGUE_NAMES),
        "undocumented_percent": _undocumented_percent(),
    }


def written_by_hand(page: Path) -> str:
    """Return the text of a page without the tables that are made."""
    return _TABLE.sub("", page.read_text("utf-8"))


def _on_pages() -> dict[str, float]:
    """Return how often pages have some words, in 10,000 words outside of code."""
    texts = (_FENCED.sub("", written_by_hand(page)).lower() for page in _pages())
    words = Counter(word for text in texts for word in re.findall(r"[a-z]+", text))
    return {
        f"{word}_on_pages_per_10000_words": 1e4
        * sum(words[form] for form in forms.split())
        / words.total()
        for word, forms in _ON_PAGES.items()
    }


def overused_words() -> list[str]:
    """Return those of the most frequent words of comments and docstrings that stand too often."""
    words = _words()
    total = sum(words.values())
    return [w for w, count in words.most_common(_FREQUENT) if _is_overused(w, count / total)]


@cache
def arrows_of_the_core() -> frozenset[tuple[str, str]]:
    """Return the pairs of rooms of the core of which the first imports the second."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"features"}
    return frozenset(arrow for arrow in _arrows() if {*arrow} <= rooms)


@cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each module of the package."""
    return {path: ast.parse(path.read_text("utf-8")) for path in modules()}


def modules() -> list[Path]:
    """Return the modules of the package without links to examples, and without tests."""
    return [path for path in sources(PACKAGE) if not path.is_symlink()]


def sources(package: Path, pattern: str = "*.py") -> list[Path]:
    """Return the files of a package, without the tests of its features."""
    found = sorted(package.rglob(pattern))
    return [path for path in found if "tests" not in path.relative_to(package).parts]


@cache
def _nodes() -> tuple[ast.AST, ...]:
    return tuple(node for tree in trees().values() for node in ast.walk(tree))


def _members(path: str, name: str, kind: type[ast.stmt] = ast.stmt) -> list[str]:
    """Return the public members that a class of the package defines."""
    nodes = ast.walk(trees()[PACKAGE / path])
    (body,) = (node.body for node in nodes if isinstance(node, ast.ClassDef) and node.name == name)
    names = [
        getattr(getattr(node, "target", None), "id", "")
        or getattr(node, "name", "")
        or "".join(target.id for target in getattr(node, "targets", ()))
        for node in body
        if isinstance(node, kind)
    ]
    return [member for member in names if member and not member.startswith("_")]


def _is_text(node: ast.AST) -> bool:
    """Tell whether a node is a docstring, of a module, class, function or attribute."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_statement(node: ast.AST) -> bool:
    """Tell whether a node is a statement, and no docstring."""
    return isinstance(node, ast.stmt) and not _is_text(node)


def _inside(path: Path) -> Path:
    return path.relative_to(PACKAGE)


def _room(path: Path) -> str:
    """Return the folder of a module below the package, or the name of a module at its root."""
    return _inside(path).parts[0].removesuffix(".py").replace("__init__", NAME)


def _arrows() -> Iterator[tuple[str, str]]:
    """Yield the room that imports and the room that is imported, TYPE_CHECKING left out."""
    for path, tree in trees().items():
        for module in _imported(tree):
            target = module.split(".")[1] if "." in module else NAME
            if target != _room(path):
                yield _room(path), target


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield modules of the package that code imports, when it is loaded or later."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(NAME):
            modules = (f"{node.module}.{alias.name}" for alias in node.names)
            # Names of the root package are its own, unless they are modules.
            yield from (name if _is_module(name) else node.module or "" for name in modules)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(f"{NAME}."))
        yield from _imported(node)


def _is_module(name: str) -> bool:
    path = REPOSITORY.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def _class_names() -> Counter[str]:
    return Counter(node.name.lstrip("_") for node in _nodes() if isinstance(node, ast.ClassDef))


def _stored_names() -> Counter[str]:
    names = (node for node in _nodes() if isinstance(node, ast.Name))
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Store))


def _undocumented_percent() -> float:
    """Return the share of public classes and functions without a docstring."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    public = [n for n in _nodes() if isinstance(n, kinds) and not n.name.startswith("_")]
    return 100 * sum(ast.get_docstring(node) is None for node in public) / len(public)


def _pages() -> Iterable[Path]:
    pages = {
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("[!.]*/README.md"),
        *REPOSITORY.joinpath("docs").rglob("*.md"),
        *(page for page in PACKAGE.rglob("*.md") if not page.is_symlink()),
    }
    names = {path: path.relative_to(REPOSITORY).as_posix() for path in pages}
    return [path for path, name in names.items() if not name.startswith(_UNCOUNTED_PAGES)]


@cache
def _texts() -> tuple[str, ...]:
    """Return every docstring, and every run of comments on lines that follow each other."""
    texts = [node.value.value.strip() for node in _nodes() if _is_text(node)]  # type: ignore[attr-defined]
    for path in trees():
        texts += _comments(path.read_text("utf-8"))
    return tuple(texts)


def _comments(source: str) -> Iterator[str]:
    lines: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith(("#!", "# noqa", "# type")):
            continue
        if lines and token.start[0] != last + 1:
            yield " ".join(lines)
            lines = []
        lines.append(token.string.lstrip("# "))
        last = token.start[0]
    if lines:
        yield " ".join(lines)


@cache
def _allowed_shares() -> Mapping[str, float]:
    """Return the share of each word that is not too much; nouns of the field may have any."""
    peers = tomllib.loads(Path(__file__).with_name("peers.toml").read_text("utf-8"))
    nouns = dict.fromkeys(peers.pop("nouns"), 1.0)
    shares = {w: n / peer["words"] for peer in peers.values() for w, n in peer["counts"].items()}
    return {word: _TOO_OFTEN * share for word, share in shares.items()} | nouns


def _is_overused(word: str, share: float) -> bool:
    return share > _allowed_shares().get(word, 0.0)


def _words() -> Counter[str]:
    return Counter(word for text in _texts() for word in re.findall(r"[a-z']+", text.lower()))
