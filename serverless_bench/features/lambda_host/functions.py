"""A function: the code, and the contents of execution environments."""

import os
import re
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import PluginError
from serverless_bench.features.lambda_host.settings import MIB_PER_CPU, HostSettings

LATEST: Final = "$LATEST"
RUNTIME: Final = f"python{sysconfig.get_python_version()}"
"""Runtime that all functions get, whatever they request."""
PACKAGES: Final = "runtime"
"""Directory of the runtime's packages within the host's directory."""
_SCRIPT: Final = str(Path(__file__).with_name("forked_environments.py"))
_RUNTIME_PACKAGES: Final = ("awslambdaric", "boto3", "botocore")
"""Packages included in AWS' Python runtimes (AWS Lambda developer guide, "Building Lambda functions
with Python"), in the versions of this installation.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaFunction:
    """Configuration of a function."""

    name: str
    arn: str
    handler: str
    """Handler as ``module.function``."""
    code: Path | None = None
    """Directory with the unzipped code; None for this installation."""
    layers: tuple[Path, ...] = ()
    """Directories with the unzipped layers; later layers take precedence."""
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mib: int = MIB_PER_CPU
    timeout_s: float = 900.0
    preload: tuple[str, ...] = ()
    """Modules that the fork server imports before it forks."""
    rehearse: tuple[Mapping[str, Any], ...] = ()
    """Calls that the fork server makes before it forks: ``call`` and ``arguments``."""
    foreign: bool = False
    """Whether another Lambda determines all environment variables, including reserved ones.
    """
    shared: bool = False
    """Whether the packages of this installation are last on ``sys.path``."""

    def interpreter(self) -> list[str]:
        """Return the command of an interpreter that sees only the packages of this function."""
        # -S omits the packages of this installation, -I also those of the user.
        flags = ["-P"] if self.code is None else ["-I", "-S"]
        return [sys.executable, *flags, _SCRIPT]

    def fork_settings(self, scratch: Path) -> dict[str, Any]:
        """Return the settings of the fork server; ``scratch`` is the host's directory."""
        return {
            "scratch": str(scratch),
            "paths": self._paths(scratch / PACKAGES),
            "last": shared_paths() if self.shared else [],
            "preload": self.preload,
            "rehearse": self.rehearse,
        }

    def _paths(self, runtime: Path) -> list[str]:
        if self.code is None:
            return []
        layers = [layer / "python" for layer in reversed(self.layers)]
        within = [layer / "lib" / RUNTIME / "site-packages" for layer in layers]
        # Lambda has the same order: the function, its layers, the runtime.
        return [str(path) for path in (self.code, *within, *layers, runtime)]

    def variables(self, settings: HostSettings, stream: str, runtime_api: str) -> dict[str, str]:
        """Return the environment variables of an execution environment.

        Parameters
        ----------
        settings
            Settings of the host.
        stream
            Unique name of the environment's log stream.
        runtime_api
            ``address:port`` of the Runtime API.
        """
        # On AWS, functions get the credentials of their role in these variables; here, the host's.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if (name.startswith("AWS_") and not self.foreign)
            or name in {"PATH", "NO_PROXY", *settings.passed}
        }
        if "AWS_ACCESS_KEY_ID" in self.environment:
            inherited.pop("AWS_SESSION_TOKEN", None)
        return {
            **inherited,
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            "AWS_REGION": settings.region,
            "AWS_DEFAULT_REGION": settings.region,
            **self.environment,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{RUNTIME}",
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_VERSION": LATEST,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.memory_mib),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{self.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": stream,
            **(self.environment if self.foreign else {}),
            "AWS_LAMBDA_RUNTIME_API": runtime_api,
            "LAMBDA_TASK_ROOT": str(self.task_root),
            "_HANDLER": self.handler,
        }

    @property
    def task_root(self) -> Path:
        """Directory of the code."""
        return self.code or Path(__file__).parents[3]


def make_runtime(directory: Path) -> Path:
    """Fill ``directory`` with links to the packages of AWS' Python runtime.

    Raises
    ------
    PluginError
        If ``awslambdaric`` is not installed.
    """
    try:
        distribution("awslambdaric")
    except PackageNotFoundError as exc:
        raise PluginError(
            "the Lambda host needs 'awslambdaric', which is not installed",
            hint="pip install 'serverless-bench[lambda-host]'",
        ) from exc
    directory.mkdir(parents=True, exist_ok=True)
    for package in _runtime_distributions():
        for name in {file.parts[0] for file in package.files or () if file.parts[0] != ".."}:
            link = directory / name
            if not link.is_symlink():
                link.symlink_to(Path(str(package.locate_file(name))).resolve())
    return directory


def _runtime_distributions() -> list[Distribution]:
    """Return the packages of a runtime, with those that they need."""
    distributions: dict[str, Distribution] = {}
    wanted = list(_RUNTIME_PACKAGES)
    while wanted:
        name = wanted.pop()
        if name in distributions:
            continue
        try:
            distributions[name] = distribution(name)
        except PackageNotFoundError:
            continue  # boto3, or a package for other platforms only
        needs = (need for need in distributions[name].requires or () if "extra ==" not in need)
        wanted += (re.split(r"[^\w.-]", need)[0] for need in needs)
    return list(distributions.values())


def shared_paths() -> list[str]:
    """Return the directories of this installation's packages, including this package."""
    root = str(Path(__file__).parents[3])
    return [path for path in sys.path if "site-packages" in path or path == root]
