"""The one form of every error: what, where, what was found, what is allowed, what to do."""


class Problem(Exception):
    """Something a person or a program must change; `str()` is one line that says it all."""

    def __init__(
        self, *, code: str, what: str, where: str = "", found: str = "", allowed: str = "", todo: str = ""
    ) -> None:
        self.code = code
        self.what = what
        self.where = where
        self.found = found
        self.allowed = allowed
        self.todo = todo
        super().__init__(self.line())

    def line(self) -> str:
        """The whole problem in one line."""
        facts = (("where", self.where), ("found", self.found), ("allowed", self.allowed))
        details = ", ".join(f"{name}: {value}" for name, value in facts if value)
        return (
            f"{self.code}: {self.what}"
            + (f" ({details})" if details else "")
            + (f" -> {self.todo}" if self.todo else "")
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), {name: getattr(self, name) for name in FIELDS}))


FIELDS = ("code", "what", "where", "found", "allowed", "todo")


def _rebuild(kind: type[Problem], fields: dict[str, str]) -> Problem:
    problem = kind.__new__(kind)
    Problem.__init__(problem, **fields)
    return problem
