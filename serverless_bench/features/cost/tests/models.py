"""Parameters that a test knows."""

from dataclasses import replace
from typing import Any

from serverless_bench.features.cost.model import FunctionModel, Launch, Model, Store

PLAIN = Model(
    name="plain", launch=Launch(), function=FunctionModel(core_s_per_gib=0.01), store=Store()
)
"""Model in which only the steps that a test adds take time."""


def changed(base: Model = PLAIN, **parts: dict[str, Any]) -> Model:
    """Return a model with other parameters, by part."""
    made = {name: replace(getattr(base, name), **values) for name, values in parts.items()}
    return replace(base, **made)
