"""Power fails at any moment, and the disk forgets what was not synced: what was acknowledged is still there.

The calls of a real process are seen by strace; at many moments the files are put together as the disk may hold them.
"""

import random
import shutil
from pathlib import Path

import pytest

from privcfs.errors import LedgerError, LedgerRolledBack
from privcfs.gate.ledger.sqlite import SqliteLedger
from tests.contracts.test_ledgers import request
from tests.gate.disk import Disk, moments, watched

REQUESTS = 120
SCRIPT = f"""
import os
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.sqlite import SqliteLedger
from tests.contracts.test_ledgers import request

class Hasty(SqliteLedger):
    def _connected(self):
        raw = super()._connected()
        raw.execute("PRAGMA synchronous = NORMAL")
        return raw

ledger = KIND("budget.db", Limit.of("1000"))
os.write(1, b"opened\\n")
for number in range({REQUESTS}):
    ledger.charge(request(str(number)))
    os.write(1, f"charged {{number}}\\n".encode())
    ledger.finish(request(str(number)), f"answer {{number}}")
    os.write(1, f"answered {{number}}\\n".encode())
"""

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="needs strace; as root: apt-get install strace")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    """Of the ledger, and of one that does not sync when it commits."""
    found = {}
    for kind in ("SqliteLedger", "Hasty"):
        folder = tmp_path_factory.mktemp(kind) / "files"
        folder.mkdir()
        root = f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent.parent)!r})\n"
        found[kind] = watched(root + SCRIPT.replace("KIND", kind), folder), folder
    return found


def put(disk: Disk, folder: Path, rng: random.Random, keep: float) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in disk.after_power_loss(rng, keep).items():
        (folder / name).write_bytes(content)
    return folder / "budget.db"


def losses(path: Path, said: list[str]) -> list[str]:
    """What was acknowledged and is gone, or is paid again."""
    if "opened" not in said:
        return []
    try:
        ledger = SqliteLedger(path)
    except LedgerError as error:
        return [f"the ledger does not open: {error}"]
    found = []
    charged = [line.split()[1] for line in said if line.startswith("charged")]
    answered = {line.split()[1] for line in said if line.startswith("answered")}
    spent = ledger.balance().spent
    if not len(charged) <= spent <= len(charged) + 1:
        found.append(f"{spent} spent after {len(charged)} charges")
    for name in charged[-3:]:
        kept = ledger.charge(request(name))
        if name in answered and kept != f"answer {name}":
            found.append(f"the answer of {name} is gone")
    if ledger.balance().spent != spent:
        found.append("something was paid twice")
    ledger.close()
    return found


def trial(trace: str, folder: Path, place: Path, rng: random.Random) -> list[str]:
    """Losses over many moments: half of them right after something was acknowledged."""
    found: list[str] = []
    before = 0
    for disk, said in moments(trace, folder):
        if rng.random() < (0.25 if len(said) > before else 0.02):
            for keep in (0.0, 0.5):
                found += losses(put(disk, place, rng, keep), said)
        before = len(said)
    return found


def test_what_was_acknowledged_outlives_a_power_cut(traces: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    assert trial(*traces["SqliteLedger"], tmp_path / "after", random.Random(0)) == []


def test_a_ledger_that_does_not_sync_is_found_out(traces: dict[str, tuple[str, Path]], tmp_path: Path) -> None:
    assert len(trial(*traces["Hasty"], tmp_path / "after", random.Random(0))) > 10


def test_a_log_cut_below_its_last_sync_is_refused_against_the_head(
    traces: dict[str, tuple[str, Path]], tmp_path: Path
) -> None:
    rng, cuts = random.Random(0), 0
    for disk, said in moments(*traces["SqliteLedger"]):
        if len(said) % 20 or len(said) < 20:
            continue
        path = put(disk, tmp_path / "after", rng, 0.0)
        log = path.with_name("budget.db-wal")
        whole = log.read_bytes() if log.exists() else b""
        ledger = SqliteLedger(path)
        head, rows = ledger.head(), len(list(ledger.rows()))
        ledger.close()
        for part in (0.2, 0.6, 0.95):
            path = put(disk, tmp_path / "after", rng, 0.0)
            path.with_name("budget.db-wal").write_bytes(whole[: int(part * len(whole))])
            cut = SqliteLedger(path)
            left = len(list(cut.rows()))
            cut.close()
            if left < rows:
                cuts += 1
                with pytest.raises(LedgerRolledBack, match="rolled back or replaced"):
                    SqliteLedger(path, known=head)
    assert cuts > 5
