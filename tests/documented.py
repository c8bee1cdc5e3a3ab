"""Whether docs/cli.md has a line for each command of a program, with each of its options."""

from pathlib import Path

import typer

PAGE = Path(__file__).parent.parent / "docs/cli.md"


def assert_documented(program: str, tool: typer.Typer) -> None:
    page = PAGE.read_text()
    group = typer.main.get_command(tool)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{program} {name}")]
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or option == "--help" or f"`{option}`" in line, (name, option)
        assert command.help
