"""AWS's decision on a request, by the rules in its IAM user guide.

After "Policy evaluation logic" and "IAM JSON policy elements: Condition operators":

* An explicit deny wins; else an allow; else the request is denied by default.
* ``Action`` matches without regard to case, ``Resource`` with; both know ``*`` and ``?``.
* Every operator and every key of a condition has to hold. One of a key's values has to
  match, or, for an operator that negates, none.
* A key that the request does not have fails an operator, unless the operator negates or
  ends in ``IfExists``.

Operators and elements without a rule here are refused, so that no policy passes a test by
accident.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

Statement = Mapping[str, Any]

_ELEMENTS: Final = {
    *("Sid", "Effect", "Action", "NotAction", "Resource", "NotResource"),
    *("Principal", "NotPrincipal", "Condition"),
}


class Verdict(Enum):
    ALLOWED = "allowed"
    DENIED = "explicitly denied"
    NOT_ALLOWED = "not allowed by anything"


@dataclass(frozen=True)
class Request:
    """One call, as AWS sees it."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)
    """Condition keys that the request has; their names know no case."""
    principal: str = "arn:aws:iam::111122223333:role/anyone"
    """ARN of the caller, or the name of an AWS service."""


def evaluate(statements: Iterable[Statement], request: Request) -> Verdict:
    """Return the decision of ``statements`` together on ``request``."""
    effects = {s["Effect"] for s in statements if applies(s, request)}
    assert effects <= {"Allow", "Deny"}
    if "Deny" in effects:
        return Verdict.DENIED
    return Verdict.ALLOWED if effects else Verdict.NOT_ALLOWED


def applies(statement: Statement, request: Request) -> bool:
    """Tell whether a statement applies to a request."""
    unknown = set(statement) - _ELEMENTS
    assert not unknown, f"the evaluator does not know {unknown}"
    return (
        _about(statement, "Action", request.action, ignore_case=True)
        and _about(statement, "Resource", request.resource, ignore_case=False)
        and _about_principal(statement, request.principal)
        and _holds(statement.get("Condition", {}), request.context)
    )


def _about(statement: Statement, element: str, value: str, *, ignore_case: bool) -> bool:
    patterns, not_patterns = statement.get(element), statement.get(f"Not{element}")
    assert patterns is None or not_patterns is None
    if not_patterns is not None:
        return not any(like(p, value, ignore_case=ignore_case) for p in _list(not_patterns))
    if patterns is None:
        # A trust policy has no resource: it is the role's own.
        assert element == "Resource", statement
        return True
    return any(like(p, value, ignore_case=ignore_case) for p in _list(patterns))


def _about_principal(statement: Statement, principal: str) -> bool:
    assert "NotPrincipal" not in statement, "the evaluator does not know NotPrincipal"
    named = statement.get("Principal", "*")
    if named == "*":
        return True
    assert set(named) <= {"AWS", "Service"}, named
    return any(like(p, principal) for kind in named.values() for p in _list(kind))


def _holds(condition: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    found = {name.lower(): value for name, value in context.items()}
    return all(
        _operator(operator, [str(value) for value in _list(wanted)], found.get(key.lower()))
        for operator, keys in condition.items()
        for key, wanted in keys.items()
    )


def _operator(operator: str, wanted: list[str], found: str | None) -> bool:
    assert not any("${" in value for value in wanted), "the evaluator knows no policy variables"
    if operator == "Null":
        return (found is None) == (wanted == ["true"])
    name = operator.removesuffix("IfExists")
    matches = _MATCHES.get(name.replace("Not", ""))
    assert matches is not None, f"the evaluator does not know {operator}"
    negated = "Not" in name
    if found is None:
        return negated or name != operator
    return any(matches(value, found) for value in wanted) != negated


def like(pattern: str, value: str, *, ignore_case: bool = False) -> bool:
    """Tell whether ``value`` matches a pattern with ``*`` and ``?``."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return re.fullmatch("".join(parts), value, flags) is not None


def _arn_like(pattern: str, value: str) -> bool:
    """Tell whether each of an ARN's six parts matches its own pattern."""
    patterns, values = pattern.split(":", 5), value.split(":", 5)
    return len(patterns) == len(values) and all(map(like, patterns, values))


_MATCHES: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "StringEquals": str.__eq__,
    "StringEqualsIgnoreCase": lambda wanted, found: wanted.lower() == found.lower(),
    "StringLike": like,
    "Bool": lambda wanted, found: wanted.lower() == found.lower(),
    # The guide: "ArnEquals and ArnLike behave identically".
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
