"""`privcfs serve` and `privcfs keys`: the owner's side of the service."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privcfs.cli.commands import VAULT, JsonOption, VaultOption
from privcfs.cli.output import emit, say, warn
from privcfs.errors import MissingDependency, SettingsError
from privcfs.owner.answering_time import VARIABLE as SECONDS
from privcfs.owner.answering_time import answering_time, from_text, in_words, rehearse_time, to_text
from privcfs.owner.vault_file import VaultFile, read_vault_file
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import show

if TYPE_CHECKING:
    from fastapi import FastAPI

    from privcfs.service.identity import Identities
    from privcfs.service.keys import Keys

VARIABLE = "PRIVCFS_VAULT"
SOCKET = "PRIVCFS_SOCKET"  # tells the processes of a service that they listen on a Unix socket
Role = Literal["owner", "analyst", "person"]
ROLES: tuple[Role, ...] = ("owner", "analyst", "person")
DaysOption = Annotated[int, typer.Option(help="For how long it is valid.")]
CapOption = Annotated[str | None, typer.Option(help="The most its holder may spend, below the ledger's limit.")]
keys_app = typer.Typer(help="Make, list and revoke the keys of the service.", no_args_is_help=True)


def serve(
    vault: VaultOption = VAULT,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback need TLS in front.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Processes.", min=1, max=64)] = 1,
    unix: Annotated[Path | None, typer.Option(help="Listen on this Unix socket, and on no address.")] = None,
) -> None:
    """Serve a vault over HTTP, with a web console, to whoever has a key."""
    try:
        import uvicorn

        import privcfs.service.app  # noqa: F401
        from privcfs.service.protocol import Guarded
    except ImportError:
        raise MissingDependency("the service needs more packages: pip install 'privcfs[service]'.") from None
    seconds = _check_time(vault)
    if not any(_keys(vault).counts().values()):
        say(f"No valid key exists yet. Make the owner's: privcfs keys make owner --role owner --vault {vault}")
    os.environ[VARIABLE], os.environ[SECONDS] = str(vault.resolve()), to_text(seconds)
    os.environ[SOCKET] = "" if unix is None else str(unix)
    _identities(read_vault_file(vault))  # mistakes are shown here, before serving
    say(in_words(seconds))
    with nullcontext(None) if unix is None else listening(unix) as number:
        say(f"Serving {vault} on {f'http://{host}:{port}' if unix is None else unix}")
        uvicorn.run(
            "privcfs.cli.serving:from_environment",
            factory=True,
            host=host,
            port=port,
            fd=number,
            workers=workers,
            access_log=False,
            log_level="error",
            http=Guarded,
            ws="none",
            timeout_keep_alive=10,
            server_header=False,
            date_header=False,
        )


@contextmanager
def listening(path: Path) -> Iterator[int]:
    """A Unix socket for its owner and group alone, as a file descriptor; it is taken away in the end.

    uvicorn would let every user of the machine connect, and whoever connects may name anybody.
    """
    with suppress(OSError), socket.socket(socket.AF_UNIX) as other:
        if path.is_socket():
            other.settimeout(1)
            try:
                other.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()  # left behind by a process that is gone
    one, before = socket.socket(socket.AF_UNIX), os.umask(0o117)
    try:
        one.bind(str(path))
    except OSError as error:
        one.close()
        raise SettingsError(f"Unix socket {path} cannot be made: {error.strerror or error}.") from None
    finally:
        os.umask(before)
    signal.signal(signal.SIGTERM, _leave)  # uvicorn ends and then sends the signal on, which would end all at once
    try:
        yield one.fileno()
    finally:
        one.close()
        path.unlink(missing_ok=True)


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _check_time(vault: Path) -> float | None:
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
    vault = file.vault(from_text(os.environ[SECONDS]))
    return make_app(vault, Keys(database), Log(database, settings.log_days), _identities(file, vault.context))


def _identities(file: VaultFile, context: PublicContext | None = None) -> "Identities | None":
    """How a reverse proxy says who asks, if the vault file allows it."""
    settings = file.service()
    if settings.identity_header is None or settings.people is None:
        return None
    from privcfs.service.identity import Identities, People, checked_header, read_secret

    if settings.identity_secret is None and not os.environ.get(SOCKET):
        raise SettingsError(
            "vault file: anyone could send the header service.identity_header; give service.identity_secret_file, or "
            "listen on a Unix socket: privcfs serve --unix."
        )
    secret = None if settings.identity_secret is None else read_secret(settings.identity_secret)
    people = People(settings.people, context or file.context())
    return Identities(checked_header(settings.identity_header), people, secret)


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
    role: Annotated[
        str, typer.Option(help="analyst, owner, or person: for advice about her own nodes, which --node names.")
    ] = "analyst",
    days: DaysOption = 90,
    cap: CapOption = None,
    targets: Annotated[Path | None, typer.Option(help="File with the nodes they may ask about, one a line.")] = None,
    node: Annotated[list[str] | None, typer.Option(help="A node they may ask about; may be given again.")] = None,
    per_minute: Annotated[int | None, typer.Option(help="How often they may ask.")] = None,
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Make a key and show its secret, this once."""
    kind: Role | None = next((one for one in ROLES if one == role), None)
    if kind is None:
        raise SettingsError(f"role {role!r} is unknown; choose {', '.join(ROLES)}.")
    keys = _keys(vault)
    from privcfs.service.keys import names_of

    try:
        lines = [] if targets is None else targets.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"targets file {targets} cannot be read; give one node a line.") from None
    named = None if targets is None and not node else [*lines, *(node or ())]
    nodes = None if named is None else [one.strip() for one in named if one.strip()]
    allowed = names_of(read_vault_file(vault).context(), nodes) if nodes else nodes
    key, secret = keys.make(kind, analyst, days=days, cap=cap, targets=allowed, per_minute=per_minute)
    if as_json:
        emit({**key.to_dict(), "secret": secret})
        return
    say(f"Key {key.name} for {analyst} ({role}), valid until {key.ends}. It is shown this once:")
    say(secret)


@keys_app.command("make-people")
def make_people(
    file: Annotated[Path, typer.Option(help="CSV with a row for each key: node, or node,holder.")],
    out: Annotated[Path, typer.Option(help="Where the keys go, for your eyes only; a file that exists is kept.")],
    days: DaysOption = 365,
    cap: CapOption = None,
    per_minute: Annotated[int, typer.Option(help="How often each of them may ask.")] = 30,
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Make a key for each person of a list, bound to her node, for advice about it: all of them or none."""
    keys = _keys(vault)
    from privcfs.service.keys import Terms
    from privcfs.service.people import read_wishes, secret_file

    context = read_vault_file(vault).context()
    terms = Terms(days, cap, per_minute)
    wishes = read_wishes(file, context)
    with secret_file(out) as written, typer.progressbar(wishes, file=sys.stderr, label="Making keys") as shown:
        count = keys.make_many("person", shown, terms, written)
    if as_json:
        emit({"keys": count, "file": str(out)})
    else:
        say(f"{count} keys are in {out}. Hand each to its holder, and to nobody else.")


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
