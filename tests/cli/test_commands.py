import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from privcfs import PublicContext
from privcfs.embedded.loan import load_bank
from privcfs.errors import (
    BadEpsilon,
    BudgetExhausted,
    ContextError,
    InputError,
    LedgerRolledBack,
    OwnerError,
    PrivcfsError,
    RequestConflict,
    SettingsError,
    VerificationFailed,
)
from privcfs.owner.vault_file import read_vault_file
from tests.shell import Shell

BANK = """\
[graph]
edges = { file = "links.csv", source = "from", target = "to" }
id = "a bank"
[public]
features = { file = "clients.csv", nodes = "client", raw = true }
snapshot = { file = "public_links.csv", source = "from", target = "to" }
model = "gcn.safetensors"
schema = "features.toml"
[budget]
ledger = "sqlite:///budget.db"
limit = "10"
"""


def test_an_own_graph_from_files_to_verified_release(shell: Shell) -> None:
    release = shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "first")
    assert release["target"] == 3
    assert release["labels"]["3"] == "person-3"
    assert set(release["intervention"]) == {"delete", "add", "mask"}
    assert release["epsilon"] == "1"
    assert release["guarantee"]["utility_range"] == "9/10"
    assert release["assumptions"] == ["FEATURES_PUBLIC", "MODEL_SECRET", "SNAPSHOT_FIXED", "TARGET_PUBLIC"]
    assert "any two secret models" in release["guarantee"]["adjacency"]
    assert shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "first") == release
    again = shell.run("explain", "person-3", "--epsilon", "1", "--request-id", "first")
    assert "Already paid: the same release as before." in again.stdout
    budget = shell.ask("budget")
    assert (budget["spent"], budget["left"], budget["answers"]) == ("1", "9", 1)
    (shell.folder / "release.json").write_text(json.dumps(release))
    assert shell.ask("verify", "release.json")["valid"] is True
    (shell.folder / "edges.csv").unlink()
    assert "yes  the ledger holds this release" in shell.run("verify", "release.json").stdout, "reads no edge"
    release["intervention"]["mask"] = [0, 1, 2]
    (shell.folder / "forged.json").write_text(json.dumps(release))
    assert "word for word" in shell.fails(VerificationFailed, "verify", "forged.json")


def test_several_targets_in_words(shell: Shell) -> None:
    done = shell.run("explain", "person-0", "person-1", "person-2", "--epsilon", "0.5", "--analyst", "ann")
    assert done.returncode == 0, done.stderr
    assert "Node person-1, epsilon 0.5:" in done.stdout
    assert not re.search(r"(delete|add)( the pair)? [0-9]", done.stdout)
    assert "pure 0.5-differential privacy of the whole release" in done.stdout
    assert "Budget: epsilon 1.5 spent, 8.5 left." in done.stdout
    assert shell.ask("budget", "--analyst", "ann")["left"] == "2.5"


def in_names(intervention: dict[str, Any]) -> str:
    """What a person expects to read where node 3 is called person-3."""
    parts = [f"{kind} person-{u} - person-{w}" for kind in ("delete", "add") for u, w in intervention[kind]]
    return ", ".join(parts + [f"mask feature {one}" for one in intervention["mask"]]) or "no intervention"


def test_candidates_are_public_and_free(shell: Shell) -> None:
    shown = shell.ask("candidates", "person-3", "--most", "2")
    assert shown["listed"][0] == {"delete": [], "add": [], "mask": []}
    assert shown["number"] > 2
    ends = {3, *(node for pair in shown["deletable"] + shown["addable"] for node in pair)}
    assert shown["labels"] == {str(node): f"person-{node}" for node in sorted(ends)}
    listed = shell.run("candidates", "person-3", "--most", "40").stdout
    assert "from public data alone" in listed
    assert re.search(r"(delete|add) person-[0-9]+ - person-[0-9]+", listed)
    assert not (shell.folder / "budget.db").exists()
    (shell.folder / "edges.csv").unlink()
    assert shell.ask("candidates", "person-3", "--most", "2") == shown, "reads no private file"


def test_an_analysts_mistakes_cost_nothing(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1", "--request-id", "used")
    mistakes: list[tuple[type[PrivcfsError], str, tuple[str, ...]]] = [
        (InputError, "target 'person-99' is not a node", ("explain", "person-99", "--epsilon", "1")),
        (InputError, "epsilon is 'NaN'", ("explain", "person-0", "--epsilon", "NaN")),
        (InputError, "epsilon is 0; it must be more than 0", ("explain", "person-0", "--epsilon", "0")),
        (BudgetExhausted, "Nothing was charged", ("explain", "person-0", "--epsilon", "60")),
        (RequestConflict, "'used' was used before", ("explain", "person-1", "--epsilon", "1", "--request-id", "used")),
        (
            InputError,
            "one target at a time",
            ("explain", "person-0", "person-1", "--epsilon", "1", "--request-id", "two"),
        ),
        (InputError, "cannot be read", ("verify", "missing.json")),
        (InputError, "is not a certificate of privcfs (it is not JSON)", ("verify", "vault.toml")),
    ]
    for kind, message, words in mistakes:
        assert message in shell.fails(kind, *words)
    assert shell.ask("budget")["spent"] == "1"


def test_errors_are_json_for_programs(shell: Shell) -> None:
    done = shell.run("explain", "nobody", "--epsilon", "1", "--json")
    assert json.loads(done.stderr)["error"] == "UnknownNode"
    assert done.stdout == ""


def test_answers_take_a_public_time_if_the_vault_file_says_so(shell: Shell) -> None:
    rewrite(shell, "# answer_seconds = 0.5", "answer_seconds = 3")
    start = perf_counter()
    shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "slow")
    assert perf_counter() - start > 3


def rewrite(shell: Shell, old: str, new: str) -> None:
    path = shell.folder / "vault.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('utility = "gated"', 'utility = "best"', "method.utility is 'best'; choose one of gated, soft"),
        ('utility = "gated"', 'utility = ["gated"]', "method.utility is"),
        ("# answer_seconds = 0.5", 'answer_seconds = "0.5"', "answer_seconds is '0.5'; give a number above 0"),
        ('limit = "10"', 'limti = "10"', "unknown key budget.limti"),
        ('limit = "10"', "limit = 10", "budget.limit must be text in quotes"),
        ("[method]", "[methods]", "unknown table [methods]"),
        ("[method]", "[method", "cannot be read"),
        ("# simplify = true", 'simplify = "false"', "graph.simplify must be true or false"),
        ('edges = "edges.csv"', 'edges = "nowhere.csv"', "does not exist; check the path"),
        ('features = "features.csv"', 'features = "edges.csv"', "features file edges.csv cannot be read"),
        ('features = "features.csv"', 'features = "features.xls"', "has an unknown ending"),
        ('model = "public_model.safetensors"', 'model = "edges.csv"', "is not a complete safetensors file"),
        ('ledger = "sqlite:///budget.db"', 'ledger = "budget.db"', "write sqlite:///budget.db"),
    ],
)
def test_an_owners_mistakes_are_named(shell: Shell, old: str, new: str, message: str) -> None:
    rewrite(shell, old, new)
    assert message in shell.fails(OwnerError, "explain", "person-0", "--epsilon", "1")


def test_a_limit_is_raised_on_purpose_and_in_one_place(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    said = shell.run("budget", "--set-limit", "20").stdout
    assert "Limits changed in the ledger and in vault.toml." in said
    assert "for a new ledger" not in said
    assert shell.ask("budget")["left"] == "19"
    assert 'limit = "20"  ' in (shell.folder / "vault.toml").read_text(), "the file follows, comments and all"
    done = shell.run("explain", "person-0", "--epsilon", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Limit 20, left 18" in shell.run("budget").stdout
    assert shell.run("budget", "--set-analyst-limit", "5").returncode == 0
    assert shell.ask("budget", "--analyst", "owner")["left"] == "3"


def test_a_limit_that_was_edited_in_the_vault_file_alone_is_spoken_of(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    rewrite(shell, 'limit = "10"', 'limit = "5"')
    words = "The limits in vault.toml are for a new ledger; those of this one hold: epsilon 10 in all, 4 per analyst."
    assert words in " ".join(shell.run("budget").stdout.split())
    assert words in " ".join(shell.run("explain", "person-0", "--epsilon", "1").stderr.split())


def test_a_limit_below_what_is_spent_is_refused(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "2")
    shell.ask("explain", "person-0", "--epsilon", "1", "--analyst", "bob")
    said = " ".join(shell.fails(SettingsError, "budget", "--set-limit", "2", "--set-analyst-limit", "1").split())
    assert "limit 2 is below the 3 that is spent already" in said
    assert "pure 10-differential privacy" in shell.run("budget").stdout
    shell.run("budget", "--set-limit", "4", "--set-analyst-limit", "3")
    assert "pure 4-differential privacy" in shell.run("budget").stdout


def test_looking_at_the_budget_first_does_no_harm(shell: Shell) -> None:
    assert shell.ask("budget")["spent"] == "0"
    assert shell.ask("explain", "person-0", "--epsilon", "1")["epsilon"] == "1"


def test_several_answers_are_paid_only_if_all_fit_and_dear_ones_are_asked_about(shell: Shell) -> None:
    message = shell.fails(BudgetExhausted, "explain", "person-0", "person-1", "person-2", "--epsilon", "2", "--yes")
    assert "epsilon 6 is needed, and 4 is left for owner. Nothing was charged" in " ".join(message.split())
    for words in (("explain", "person-0"), ("select", "person-0", "person-1")):
        message = shell.fails(InputError, *words, "--epsilon", "3.9")
        assert "this spends epsilon 3.9 of the 4 that is left for owner; add --yes" in " ".join(message.split())
    assert shell.ask("budget")["spent"] == "0"
    assert shell.ask("explain", "person-0", "--epsilon", "3.9", "--yes", "--request-id", "dear")["epsilon"] == "3.9"
    assert shell.ask("explain", "person-0", "--epsilon", "3.9", "--request-id", "dear"), (
        "what is paid is not asked about"
    )


def test_a_person_at_a_terminal_is_asked_before_much_is_spent(shell: Shell) -> None:
    words = [sys.executable, "-c", "from privcfs.cli import main; main()", "explain", "person-0", "--epsilon", "3.9"]
    for answer, spent in ((b"n\n", "0"), (b"y\n", "3.9")):
        controller, terminal = pty.openpty()
        person = subprocess.Popen(
            words,
            cwd=shell.folder,
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=shell.environment,
        )
        os.write(controller, answer)
        _, asked = person.communicate(timeout=60)
        assert "This spends epsilon 3.9 of the 4 that is left for owner. Go on? [y/N]" in asked.decode()
        assert shell.ask("budget")["spent"] == spent
        os.close(controller)
        os.close(terminal)


def test_suggestions_whose_price_cannot_be_divided_leave_a_little_unspent(shell: Shell) -> None:
    said = " ".join(shell.run("explain", "person-3", "--epsilon", "1", "--suggestions", "3").stdout.split())
    assert "3 suggestions at epsilon 0.333 each; 0.001 of 1 is not spent, because it cannot be divided." in said
    assert shell.ask("budget")["spent"] == "0.999"


def test_what_is_left_for_an_analyst_is_the_least_of_cap_own_limit_and_everyones(shell: Shell) -> None:
    shell.ask("keys", "make", "lea", "--cap", "0.5")
    shell.ask("explain", "person-1", "--epsilon", "0.4", "--analyst", "lea", "--yes")
    assert "Limit 0.5, left 0.1: 0 more releases at epsilon 1." in shell.run("budget", "--analyst", "lea").stdout
    fields = shell.ask("budget", "--analyst", "lea", "--price", "0.05")
    assert (fields["left"], fields["limited_by"], fields["more_releases"]) == ("0.1", "you", 2)
    for analyst in ("ann", "bob"):
        shell.ask("explain", "person-1", "--epsilon", "4", "--analyst", analyst, "--yes")
    assert "Limit 4, left 1.6 of the limit of all analysts: 1 more" in shell.run("budget", "--analyst", "zoe").stdout
    assert shell.ask("budget")["limited_by"] == "everyone"


def test_a_budget_at_a_price_below_the_least_is_refused(shell: Shell) -> None:
    assert "the least price of an answer here is 0.01" in shell.fails(BadEpsilon, "budget", "--price", "0.001")


def test_a_limit_that_the_vault_file_does_not_name_is_changed_in_the_ledger_alone(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('limit_per_analyst = "4"', '# limit_per_analyst = "2"'))
    shell.ask("explain", "person-1", "--epsilon", "1")
    assert "Limits changed in the ledger.\n" in shell.run("budget", "--set-analyst-limit", "3").stdout


def test_a_question_below_the_least_price_is_refused(shell: Shell) -> None:
    message = shell.fails(BadEpsilon, "explain", "person-3", "--epsilon", "0.009")
    assert "epsilon is 0.009; the least price of an answer here is 0.01." in " ".join(message.split())
    rewrite(shell, '# least_price = "0.01"', 'least_price = "0.5"')
    assert "is 0.5" in shell.fails(BadEpsilon, "explain", "person-3", "--epsilon", "0.4")
    assert shell.ask("budget")["spent"] == "0"


def test_ledger_and_head_are_for_their_owner_alone(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    made = [
        path
        for path in shell.folder.iterdir()
        if path.name.startswith(("budget.db", "head.json", "graphs", "edges.csv."))
    ]
    assert len(made) >= 5
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in made} == {path.name: "0o600" for path in made}
    (shell.folder / "budget.db").chmod(0o644)
    shell.ask("budget")
    assert (shell.folder / "budget.db").stat().st_mode & 0o777 == 0o640, "others are shut out of an older ledger"


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"labels": {"3": "eve"}}, "the names are this vault's"),
        ({"labels": {"99": "eve"}}, "the names are this vault's"),
        ({"note": "added"}, "the file has the fields of a certificate, as this program writes them"),
        ({"guarantee": {"delta": "0.5"}}, "the file has the fields of a certificate, as this program writes them"),
    ],
    ids=str,
)
def test_verify_rejects_any_change(shell: Shell, change: dict[str, Any], check: str) -> None:
    release = shell.ask("explain", "person-3", "--epsilon", "1")
    for key, value in change.items():
        release[key] = {**release[key], **value} if isinstance(value, dict) else value
    (shell.folder / "forged.json").write_text(json.dumps(release))
    assert check in shell.fails(VerificationFailed, "verify", "forged.json")


def test_a_certificate_of_version_0_1_stays_valid_with_the_names_that_were_printed_then(shell: Shell) -> None:
    """Version 0.1 kept no names in its ledger; its command line added them to the JSON that it printed."""
    path = shell.folder / "vault.toml"
    vault = read_vault_file(path).vault()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PublicContext, "labels", lambda *_: {})
        release = vault.release("person-3", "1", request_id="old")
    assert "labels" not in release.to_dict()
    printed = {**release.to_dict(), "labels": {str(node): f"person-{node}" for node in release.nodes}}
    for fields in (release.to_dict(), printed):
        (shell.folder / "old.json").write_text(json.dumps(fields))
        assert shell.ask("verify", "old.json")["valid"]
    assert shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "old") == printed
    for forged in ({"3": "eve"}, {}):
        (shell.folder / "old.json").write_text(json.dumps({**printed, "labels": {**forged}}))
        assert "not valid" in shell.fails(VerificationFailed, "verify", "old.json")


def test_a_head_kept_elsewhere_is_checked(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    assert shell.run("budget", "--export-head", "elsewhere.json").returncode == 0
    shell.ask("explain", "person-0", "--epsilon", "1")
    assert shell.ask("budget", "--check-head", "elsewhere.json")["spent"] == "2"
    head = json.loads((shell.folder / "elsewhere.json").read_text())
    (shell.folder / "elsewhere.json").write_text(json.dumps({**head, "digest": "0" * 64}))
    assert "lacks row" in shell.fails(LedgerRolledBack, "budget", "--check-head", "elsewhere.json")
    assert "does not exist" in shell.fails(InputError, "budget", "--check-head", "nowhere.json")


def test_exporting_a_head_does_not_hide_a_rollback(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    old = (shell.folder / "budget.db").read_bytes()
    shell.ask("explain", "person-0", "--epsilon", "1")
    for name in ("budget.db-wal", "budget.db-shm"):
        (shell.folder / name).unlink(missing_ok=True)
    (shell.folder / "budget.db").write_bytes(old)
    assert "lacks row" in shell.fails(LedgerRolledBack, "budget", "--export-head", "head.json")


def test_exporting_a_head_elsewhere_does_not_replace_a_lost_one(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    (shell.folder / "head.json").unlink()
    assert "head file" in shell.fails(SettingsError, "budget", "--export-head", "elsewhere.json")
    assert not (shell.folder / "head.json").exists()


def test_a_head_file_behind_a_symbolic_link_is_written_where_it_is(shell: Shell) -> None:
    """An owner keeps the head on another disk; a file in the link's place would be lost with the ledger."""
    shell.ask("explain", "person-0", "--epsilon", "1")
    far, link = shell.folder / "far.json", shell.folder / "head.json"
    link.rename(far)
    link.symlink_to(far)
    before = far.read_text()
    shell.ask("explain", "person-0", "--epsilon", "1")
    assert link.is_symlink()
    assert far.read_text() != before


def test_a_lost_or_rolled_back_ledger_is_refused(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    for name in ("budget.db", "budget.db-wal", "budget.db-shm"):
        (shell.folder / name).unlink(missing_ok=True)
    assert "is missing, but a head of it is known" in shell.fails(
        LedgerRolledBack, "explain", "person-0", "--epsilon", "1"
    )
    assert "is missing" in shell.fails(LedgerRolledBack, "budget")


def test_a_lost_head_is_noticed_and_exported_anew(shell: Shell) -> None:
    shell.ask("explain", "person-0", "--epsilon", "1")
    (shell.folder / "head.json").unlink()
    assert "head file" in shell.fails(SettingsError, "budget")
    assert shell.run("budget", "--export-head", "head.json").returncode == 0
    assert shell.ask("budget")["spent"] == "1"
    assert "cannot be written" in shell.fails(SettingsError, "budget", "--export-head", "nowhere/head.json")


def test_init_never_replaces_a_graph_id_by_accident(shell: Shell) -> None:
    before = (shell.folder / "vault.toml").read_text()
    assert "Use --force to replace it" in shell.fails(SettingsError, "init")
    assert (shell.folder / "vault.toml").read_text() == before
    assert shell.run("init", "--force").returncode == 0
    assert (shell.folder / "vault.toml").read_text() != before


def test_a_mistyped_command_gets_help(shell: Shell) -> None:
    done = shell.run("explian")
    assert done.returncode == 2
    assert "explain" in done.stderr
    assert "--epsilon" in shell.run("explain", "--help").stdout
    assert "Private counterfactual explanations" in shell.run().stdout + shell.run().stderr
    assert shell.run("--version").stdout.startswith("privcfs 0.")


def test_the_demo_needs_no_torch_and_tells_the_whole_story(tmp_path: Path) -> None:
    script = "import sys; sys.modules['torch'] = None; from privcfs.cli import main; main()"
    command = [sys.executable, "-c", script, "demo", "--folder", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for words in (
        "SIMULATION",
        "Released",
        "1 of 10 spent, 9 left",
        "factor of at most 2.72",
        "AUC is at most 0.7",
        "The honest zero",
        "out/release.html",
    ):
        assert words in done.stdout
    page = (tmp_path / "out/release.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace('lang="en"', ""), "works offline"
    assert json.loads((tmp_path / "out/release.json").read_text())["assumptions"] == [
        "BACKBONE_FROM_SNAPSHOT",
        "FEATURES_PUBLIC",
        "SNAPSHOT_SIMULATED",
        "TARGET_PUBLIC",
    ]


def test_the_demo_tells_the_story_of_a_loan(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell.run("demo", "--case", "loan").stdout
    for words in (
        "no person is behind any row",
        "What she is told herself",
        "LoanDuration: ",
        "clients whom the model",
    ):
        assert words in told
    assert "What she is told herself, for nothing" in (tmp_path / "privcfs-demo/release.html").read_text()
    answer = shell.ask("demo", "--case", "loan", "--target", "client-184")
    assert answer["advice"]["labels"][str(answer["advice"]["target"])] == "client-184"


def test_features_and_a_change_of_ones_own_on_the_command_line(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    load_bank().write(tmp_path)
    (tmp_path / "vault.toml").write_text(BANK)
    assert "LoanDuration (now 42 months): 18 to 66 months, in steps of 6" in shell.run("features", "client-214").stdout
    listed = shell.ask("features", "client-214")
    assert {one["feature"] for one in listed["features"]} >= {"LoanDuration", "Guarantor"}
    found = shell.ask("believe", "client-214", "--set", "LoanDuration=18", "--set", "Guarantor=yes")
    assert found["not_allowed"] == []
    assert [one["to"] for one in found["intervention"]["change"]] == ["yes", "18"]
    assert "has no value '19'" in shell.fails(InputError, "believe", "client-214", "--set", "LoanDuration=19")
    assert "write a feature and its new value" in shell.fails(InputError, "believe", "client-214", "--set", "Age")
    assert "Not allowed: Age cannot be changed so." in shell.run("believe", "client-214", "--set", "Age=18").stdout


def test_the_demo_spends_a_real_budget(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    answer = shell.ask("demo", "--dataset", "citeseer", "--epsilon", "6")
    assert answer["budget"]["left"] == "4"
    message = shell.fails(BudgetExhausted, "demo", "--dataset", "citeseer", "--epsilon", "6")
    assert "delete privcfs-demo to start over" in message
    assert "is not embedded; choose cora, citeseer, loan" in shell.fails(InputError, "demo", "--dataset", "karate")


def test_suggestions_a_noisy_answer_and_a_private_choice(shell: Shell) -> None:
    edit(shell, 'limit_per_analyst = "4"', "")
    three = shell.ask("explain", "person-3", "--epsilon", "3", "--suggestions", "3", "--request-id", "s")
    assert [one["request_id"] for one in three] == ["s/1", "s/2", "s/3"]
    assert {one["epsilon"] for one in three} == {"1"}
    (shell.folder / "one.json").write_text(json.dumps(three[0]))
    answer = shell.ask("confirm", "one.json", "--epsilon", "1")
    assert answer["flips"] in (True, False)
    assert abs(answer["reliability"] - 0.731) < 0.001
    assert "is right with probability 0.731" in shell.run("confirm", "one.json", "--epsilon", "1").stdout
    assert answer["labels"] == three[0]["labels"]
    asked = f"Does it flip the decision on person-3: {in_names(three[0]['intervention'])}?"
    assert asked in shell.run("confirm", "one.json", "--epsilon", "1").stdout
    chosen = shell.ask("select", "person-1", "person-4", "--epsilon", "1")
    assert chosen["target"] in (1, 4)
    assert chosen["labels"] == {str(chosen["target"]): f"person-{chosen['target']}"}
    assert "Node person-" in shell.run("select", "person-1", "person-4", "--epsilon", "1").stdout
    assert shell.ask("budget")["spent"] == "8"
    shell.fails(InputError, "confirm", "nothing.json", "--epsilon", "1")


def test_a_budget_in_rho_says_what_its_limit_means(shell: Shell) -> None:
    edit(shell, '# contract = "zcdp"', 'contract = "zcdp"')
    edit(shell, 'limit = "10"', 'limit = "2"')
    edit(shell, 'limit_per_analyst = "4"', "")
    shell.ask("explain", "person-3", "--epsilon", "1")
    found = shell.ask("budget", "--price", "0.1")
    assert found["unit"] == "rho"
    assert found["contract"] == {"kind": "zcdp", "delta": "0.000001"}
    assert 0 < float(found["spent"]) <= 0.5
    assert found["more_releases"] > 300
    words = shell.run("budget").stdout
    assert "2-zCDP of all releases together" in words
    assert "more releases at epsilon 1" in words


def test_a_private_snapshot_is_paid_for_and_changes_what_is_promised(shell: Shell) -> None:
    (shell.folder / "public_edges.csv").unlink()
    written = shell.ask("snapshot", "--epsilon", "3", "--pairs", "8")
    assert written["pairs"] == 8
    assert len((shell.folder / "public_edges.csv").read_text().splitlines()) == 9
    edit(shell, "# snapshot_is_private = true", "snapshot_is_private = true")
    release = shell.ask("explain", "person-3", "--epsilon", "1")
    assert "SNAPSHOT_PRIVATE" in release["assumptions"]
    assert "SNAPSHOT_FIXED" not in release["assumptions"]
    assert "differ in one edge only, and so does the sum: not for any two graphs" in shell.run("budget").stdout
    assert "exists; name another file" in shell.fails(SettingsError, "snapshot", "--epsilon", "1")


def test_what_may_be_named_is_the_owners_decision(shell: Shell) -> None:
    edit(shell, "# [actionable]", "[actionable]")
    edit(shell, '# immutable_nodes = ["7"]', 'immutable_nodes = ["person-7"]')
    edit(shell, "# immutable_features = [3]", "immutable_features = [3]")
    edit(shell, '# partners = ["1", "2"]', 'partners = ["person-1", "person-2"]')
    edit(shell, "# desired = 2", "desired = 2")
    listed = shell.ask("candidates", "person-3")
    assert not [pair for pair in listed["deletable"] + listed["addable"] if 7 in pair]
    assert 3 not in listed["maskable"]
    assert {node for pair in listed["addable"] for node in pair} <= {1, 2, 3}
    assert shell.ask("explain", "person-3", "--epsilon", "1")["target"] == 3
    edit(shell, "desired = 2", "desired = 9")
    assert "[actionable] cannot be read" in shell.fails(SettingsError, "explain", "person-3", "--epsilon", "1")
    edit(shell, "desired = 9", "desired = 1")
    edit(shell, 'candidates = "small-sets"', 'candidates = "one-hop"')
    assert "need candidates that are sets or ladders" in shell.fails(
        SettingsError, "explain", "person-3", "--epsilon", "1"
    )


def test_a_search_in_stages_contains_its_first_answer_and_verifies_with_it(shell: Shell) -> None:
    first, second = shell.folder / "first.json", shell.folder / "second.json"
    for path, more in ((first, ()), (second, ("--beyond", "first.json"))):
        found = shell.ask("explain", "person-3", "--epsilon", "1", *more)
        path.write_text(json.dumps(found))
    assert shell.ask("budget")["spent"] == "2"
    assert shell.ask("verify", "second.json", "--beyond", "first.json")["valid"]
    assert "not valid" in shell.fails(VerificationFailed, "verify", "second.json")
    assert "beyond continues one release" in shell.fails(
        InputError, "explain", "person-3", "person-4", "--epsilon", "1", "--beyond", "first.json"
    )


def test_deletable_pairs_may_come_from_public_metadata(shell: Shell) -> None:
    edit(shell, '# metadata = "known_pairs.csv"', 'metadata = "known_pairs.csv"')
    (shell.folder / "known_pairs.csv").write_text(
        "source,target\nperson-3,person-5\nperson-1,person-3\nperson-1,person-2\n"
    )
    assert shell.ask("candidates", "person-3")["deletable"] == [[1, 3], [3, 5]]
    assert shell.ask("explain", "person-3", "--epsilon", "1")["target"] == 3
    edit(shell, 'candidates = "small-sets"', 'candidates = "edges-only"')
    assert "metadata need candidates that are sets" in shell.fails(SettingsError, "candidates", "person-3")
    edit(shell, 'candidates = "edges-only"', 'candidates = "ladders"')
    (shell.folder / "known_pairs.csv").write_text("source,target\nperson-3,nobody\n")
    assert "metadata" in shell.fails(ContextError, "candidates", "person-3")


def edit(shell: Shell, old: str, new: str) -> None:
    path = shell.folder / "vault.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_the_owner_is_told_of_failures_on_standard_error_alone(shell: Shell) -> None:
    """What is handed on, the JSON of an answer, is the same text with and without a failure."""
    rewrite(shell, "# answer_seconds = 0.5", "answer_seconds = 0.000001")
    done = shell.run("explain", "person-3", "--epsilon", "1", "--request-id", "r", "--json")
    assert "1 evaluation was given up for work, and drawn from public scores; 1 answer was later" in done.stderr
    assert "keep it to yourself" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (shell.folder / "release.json").write_text(done.stdout)
    again = shell.run("explain", "person-3", "--epsilon", "1", "--request-id", "r", "--json")
    assert (again.stdout, again.stderr) == (done.stdout, ""), "a stored answer is evaluated no more"
    for words in (("confirm", "release.json"), ("select", "person-1", "person-2")):
        done = shell.run(*words, "--epsilon", "1")
        assert "1 evaluation was given up for work" in done.stderr
        assert "given up" not in done.stdout
