"""What every command is handed: where the store is, which code to load, and where to write."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from paceline.cli.arguments import Option
from paceline.cli.render import Screen

if TYPE_CHECKING:
    from paceline.config import Settings


@dataclass(slots=True)
class Shell:
    """The options that hold for every command."""

    screen: Screen
    store: str | None = None
    apps: list[str] = field(default_factory=list)

    def settings(self, **said: object) -> "Settings":
        """The settings that hold here, with what the command line says on top."""
        from paceline.config import current  # late: help and version do without

        return current(store=self.store, **said)

    def load_apps(self) -> None:
        """Imports what `--app` names, so that its agents are known."""
        if self.apps:
            from paceline.agents.loading import load_app  # late: most commands load no code

            for app in self.apps:
                load_app(app)


def everywhere(
    _: None,
    store: Annotated[str | None, Option("the store (default: sqlite:///.paceline/paceline.db)", metavar="URL")] = None,
    app: Annotated[list[str] | None, Option("module or file with agents; may be repeated", metavar="MODULE")] = None,
    output: Annotated[Literal["table", "json"], Option("how to print (default: table)", "-o")] = "table",
    no_color: Annotated[bool, Option("no colours; so does NO_COLOR=1")] = False,
    version: Annotated[bool, Option("print the version")] = False,
    help: Annotated[bool, Option("print help", "-h")] = False,
) -> Shell:
    """The options that every command takes, before or after its name."""
    return Shell(Screen(as_json=output == "json", color=not no_color), store, app or [])
