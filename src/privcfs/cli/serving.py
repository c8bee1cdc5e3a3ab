"""`privcfs serve` and `privcfs keys`: the owner's side of the service."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privcfs.cli.commands import VAULT, JsonOption, VaultOption
from privcfs.cli.output import emit, say, warn
from privcfs.errors import MissingDependency, SettingsError
from privcfs.owner.answering_time import VARIABLE as SECONDS
from privcfs.owner.answering_time import answering_time, from_text, in_words, rehearse_time, to_text
from privcfs.owner.vault_file import read_vault_file
from privcfs.public.epsilon import show

if TYPE_CHECKING:
    from fastapi import FastAPI

    from privcfs.service.keys import Keys

VARIABLE = "PRIVCFS_VAULT"
keys_app = typer.Typer(help="Make, list and revoke the keys of the service.", no_args_is_help=True)


def serve(
    vault: VaultOption = VAULT,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need TLS in front.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Processes.", min=1, max=64)] = 1,
) -> None:
    """Serve a vault over HTTP, with a web console, to whoever has a key."""
    try:
        import uvicorn

        import privcfs.service.app  # noqa: F401
        from privcfs.service.protocol import Guarded
    except ImportError:
        raise MissingDependency("the service needs more packages: pip install 'privcfs[service]'.") from None
    seconds = _rehearse(vault)
    if not _keys(vault).all():
        say(f"No key exists yet. Make the owner's: privcfs keys make owner --role owner --vault {vault}")
    os.environ[VARIABLE], os.environ[SECONDS] = str(vault.resolve()), to_text(seconds)
    say(in_words(seconds))
    say(f"Serving {vault} on http://{host}:{port}")
    uvicorn.run(
        "privcfs.cli.serving:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        access_log=False,
        log_level="error",
        http=Guarded,
        ws="none",
        timeout_keep_alive=10,
        server_header=False,
        date_header=False,
    )


def _rehearse(vault: Path) -> float | None:
    """The public answering time. Faults of the owner's files and settings are shown here, before serving."""
    file = read_vault_file(vault)
    opened = file.vault()
    warn(file.account.other_limit(opened.ledger))
    measured = rehearse_time(opened)
    say(str(measured))
    seconds = answering_time(file, measured)
    warn(measured.check(opened.method, seconds))
    return seconds


def from_environment() -> "FastAPI":
    """The service of the vault file that the environment names: what each worker process runs."""
    from privcfs.service.app import make_app
    from privcfs.service.database import open_database
    from privcfs.service.keys import Keys
    from privcfs.service.log import Log

    file = read_vault_file(Path(os.environ[VARIABLE]))
    settings = file.service()
    database = open_database(settings.database)
    return make_app(file.vault(from_text(os.environ[SECONDS])), Keys(database), Log(database, settings.log_days))


def _keys(vault: Path) -> "Keys":
    try:
        from privcfs.service.database import open_database
        from privcfs.service.keys import Keys
    except ImportError:
        raise MissingDependency("the service needs more packages: pip install 'privcfs[service]'.") from None
    return Keys(open_database(read_vault_file(vault).service().database))


@keys_app.command("make")
def make_key(
    analyst: Annotated[str, typer.Argument(help="Who will use it: limits and request ids are per analyst.")],
    role: Annotated[str, typer.Option(help="analyst or owner.")] = "analyst",
    days: Annotated[int, typer.Option(help="For how long it is valid.")] = 90,
    cap: Annotated[str | None, typer.Option(help="The most this analyst may spend, below the ledger's limit.")] = None,
    targets: Annotated[Path | None, typer.Option(help="File with the nodes they may ask about, one a line.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="How often they may ask.")] = None,
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Make a key and show its secret, this once."""
    if role not in ("analyst", "owner"):
        raise SettingsError(f"role {role!r} is unknown; choose analyst or owner.")
    kind: Literal["owner", "analyst"] = "owner" if role == "owner" else "analyst"
    try:
        lines = [] if targets is None else targets.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"targets file {targets} cannot be read; give one node a line.") from None
    context = None if targets is None else read_vault_file(vault).context()
    allowed = None if context is None else [context.label(context.node(one.strip())) for one in lines if one.strip()]
    key, secret = _keys(vault).make(kind, analyst, days=days, cap=cap, targets=allowed, per_minute=per_minute)
    if as_json:
        emit({**key.to_dict(), "secret": secret})
        return
    say(f"Key {key.name} for {analyst} ({role}), valid until {key.ends}. It is shown this once:")
    say(secret)


@keys_app.command("list")
def list_keys(vault: VaultOption = VAULT, as_json: JsonOption = False) -> None:
    """Show every key and what it may do, without its secret."""
    for key in _keys(vault).all():
        if as_json:
            emit(key.to_dict())
        else:
            state = f"revoked {key.revoked}" if key.revoked else f"until {key.ends}"
            cap = "no cap" if key.cap is None else f"may spend {show(key.cap)}"
            pace = "any pace" if key.per_minute is None else f"{key.per_minute} requests a minute"
            targets = "any target" if key.targets is None else f"{len(key.targets)} targets"
            say(f"{key.name}  {key.role:7}  {key.analyst}  {cap}  {pace}  {targets}  {state}")


@keys_app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="The key's name, as `keys list` shows it.")], vault: VaultOption = VAULT
) -> None:
    """End a key now."""
    _keys(vault).revoke(name)
    say(f"Key {name} is revoked.")
