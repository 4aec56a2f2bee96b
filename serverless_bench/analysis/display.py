"""Results that ``print`` shows as the command does, and notebooks as tables."""


class Displayed:
    """Base of results: what they look like is known to the reporters, and to no analysis."""

    __slots__ = ()

    def __str__(self) -> str:
        from serverless_bench import render  # noqa: PLC0415 - the package's front finds reporters

        return render(self).rstrip("\n")

    def _repr_html_(self) -> str:
        from serverless_bench import render  # noqa: PLC0415 - as above

        return render(self, "html")
