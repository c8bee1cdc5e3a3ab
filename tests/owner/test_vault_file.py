"""The vault file: one way in for the command line, the service, the fleet and Python, with the same guards."""

import json
from pathlib import Path

import pytest

import privcfs
from privcfs.errors import ContextError, GraphError, LedgerRolledBack, SettingsError
from privcfs.owner.template import template
from privcfs.owner.vault_file import VaultFile, read_vault_file
from tests.shell import Shell


def vault_file(shell: Shell) -> VaultFile:
    return read_vault_file(shell.folder / "vault.toml")


def test_python_opens_the_vault_that_the_command_line_has(shell: Shell) -> None:
    vault = privcfs.open_vault(shell.folder / "vault.toml")
    release = vault.release("person-3", "1", request_id="same")
    assert shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "same") == release.to_dict()
    assert vault.balance().spent == 1
    assert str(privcfs.open_vault(str(shell.folder / "vault.toml")).head()) == str(vault.head())


def test_a_vault_opened_in_python_has_the_guards_of_the_command_line(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    vault = privcfs.open_vault(path)
    vault.release("person-3", "1")
    assert (shell.folder / "head.json").exists(), "the head file follows"
    other = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("head"))
    (shell.folder / "other.toml").write_text(other.replace("budget.db", "second.db"))
    with pytest.raises(SettingsError, match="one private graph has one budget"):
        privcfs.open_vault(shell.folder / "other.toml")
    head = path.with_name("head.json")
    head.write_text(json.dumps(json.loads(head.read_text()) | {"digest": "0" * 64}))
    with pytest.raises(LedgerRolledBack, match="rolled back or replaced"):
        privcfs.open_vault(path)


def test_the_guards_are_not_those_of_a_vault_made_by_hand(shell: Shell) -> None:
    """The twin: the same parts put together without the vault file know of no tie and get a second budget."""
    file = vault_file(shell)
    file.vault()
    context = file.context()
    ledger = f"sqlite:///{shell.folder / 'second.db'}"
    assert privcfs.Vault(file.graph(context), context, ledger=ledger, limit="10", secrets=file.secrets(context))


def test_an_answering_time_may_be_given(shell: Shell) -> None:
    vault = privcfs.open_vault(shell.folder / "vault.toml", answer_seconds=0.3)
    assert vault._answer_seconds == 0.3


def test_the_public_context_never_opens_a_secret_file(shell: Shell) -> None:
    file = vault_file(shell)
    for name in ("edges.csv", "gcn.safetensors"):
        (shell.folder / name).unlink()
    context = file.context()
    assert file.method(context).candidates.propose(context, 3)
    with pytest.raises(GraphError, match="does not exist"):
        file.graph(context)


def test_a_snapshot_that_is_the_private_edges_is_refused(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('"public_edges.csv"', '"edges.csv"'))
    with pytest.raises(SettingsError, match="private edges are not public"):
        vault_file(shell).context()


def test_every_template_has_an_id_of_its_own() -> None:
    first, second = (line for text in (template(), template()) for line in text.splitlines() if line.startswith("id"))
    assert first != second


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[graf]\n", r"unknown table \[graf\]"),
        ("[graph]\nedgez = 'x'\n", "unknown key graph.edgez"),
        ("[public]\nmodel = 'x'\nbackbone = 'y'\n", "public.model is given twice; backbone is a former name"),
        ("graph = 3\n", r"unknown table \[graph\]"),
        ("[graph\n", "cannot be read"),
    ],
)
def test_a_mistyped_file_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "vault.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_vault_file(path)


@pytest.mark.parametrize(
    ("method", "actionable", "words"),
    [
        ('candidates = "one-hop"', "immutable_nodes = [3]", "need candidates that are sets or ladders"),
        ('utility = "soft"', "desired = 1", "actionable.desired needs the utility gated"),
    ],
)
def test_a_part_that_cannot_keep_a_restriction_refuses_it(
    shell: Shell, method: str, actionable: str, words: str
) -> None:
    path = shell.folder / "vault.toml"
    text = path.read_text()
    key = method.split(" = ")[0]
    line = next(one for one in text.splitlines() if one.startswith(key))
    restricted = actionable.replace("[3]", '["person-3"]')
    path.write_text(text.replace(line, method) + f"\n[actionable]\n{restricted}\n")
    file = vault_file(shell)
    with pytest.raises(SettingsError, match=words):
        file.method(file.context())


def kept(shell: Shell) -> Path:
    """The same vault, whose owner keeps the model without a promise about it."""
    path = shell.folder / "vault.toml"
    text = path.read_text().replace('model_is = "secret"', 'model_is = "kept"')
    path.write_text(text.replace('model = "public_model', '# model = "public_model'))
    return path


def test_a_kept_model_decides_and_guides_and_the_release_says_so(shell: Shell) -> None:
    kept(shell)
    (shell.folder / "public_model.safetensors").unlink()
    vault = vault_file(shell).vault()
    assert vault.context.model.digest == privcfs.load_model(shell.folder / "gcn.safetensors").digest
    release = vault.release("person-3", "1")
    assert "MODEL_KEPT" in release.assumptions
    assert "secret" not in str(release.guarantee)


def test_a_kept_model_beside_a_public_one_is_refused(shell: Shell) -> None:
    path = kept(shell)
    path.write_text(path.read_text().replace('# model = "public_model', 'model = "public_model'))
    with pytest.raises(SettingsError, match=r"drop public\.model"):
        vault_file(shell).context()


@pytest.mark.parametrize("status", ['"hidden"', "3"])
def test_an_unknown_status_of_a_model_is_refused(shell: Shell, status: str) -> None:
    path = kept(shell)
    path.write_text(path.read_text().replace('model_is = "kept"', f"model_is = {status}"))
    with pytest.raises(SettingsError, match="must be 'kept' or 'secret'"):
        vault_file(shell).context()


def test_a_vault_file_of_version_0_1_has_a_secret_model(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text("".join(one for one in path.read_text().splitlines(True) if not one.startswith("model_is")))
    assert "MODEL_SECRET" in vault_file(shell).vault().release("person-3", "1").assumptions


def test_own_edges_are_read_where_the_file_says_so(shell: Shell) -> None:
    path = kept(shell)
    path.write_text(path.read_text().replace('# reads = "own-edges"', 'reads = "own-edges"'))
    assert vault_file(shell).vault().release("person-3", "1").mechanism.endswith("by own edges")
    path.write_text(path.read_text().replace('mechanism = "rehearsed"', 'mechanism = "uniform"'))
    with pytest.raises(SettingsError, match="needs the mechanism rehearsed"):
        vault_file(shell).vault()


def test_own_edges_with_a_secret_model_are_refused(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('# reads = "own-edges"', 'reads = "own-edges"'))
    with pytest.raises(SettingsError, match="their one account for the whole vault"):
        vault_file(shell).vault()


SCHEMA = """
[features.Duration]
kind = "number"
column = "a"
unit = "months"
low = 0
high = 6
step = 1

[features.Guarantor]
kind = "flag"
column = "b"

[features.Origin]
kind = "fixed"
column = "c"
"""


@pytest.fixture
def loans(shell: Shell) -> Shell:
    """The newcomer's folder with a public model that decides, and a schema of its features."""
    (shell.folder / "features.toml").write_text(SCHEMA)
    path = shell.folder / "vault.toml"
    text = path.read_text().replace("# schema = ", "schema = ").replace('candidates = "small-sets"', "# candidates")
    path.write_text(
        text.replace('model_is = "secret"', 'model_is = "kept"').replace('\nmodel = "public_', '\n# model = "')
    )
    return shell


def test_a_schema_makes_answers_speak_of_features(loans: Shell) -> None:
    guess = loans.ask("guess", "person-3")
    listed = loans.ask("candidates", "person-3", "--most", "200")
    assert listed["maskable"] == []
    assert {one["feature"] for one in listed["changeable"]} == {"Duration", "Guarantor"}
    words = {f"{one['feature']}: {one['from']} -> {one['to']}" for one in listed["changeable"]}
    assert any(one.startswith("Duration: ") for one in words)
    assert all(set(one) == {"delete", "add", "mask"} or one["change"] for one in listed["listed"])
    assert guess["intervention"]["mask"] == []
    release = loans.ask("explain", "person-3", "--epsilon", "2", "--request-id", "a")
    assert len(release["constraints"]) == 64
    (loans.folder / "release.json").write_text(json.dumps(release))
    assert "yes  the intervention keeps to the constraints" in loans.run("verify", "release.json").stdout
    told = loans.run("candidates", "person-3", "--most", "200").stdout
    assert "changes of features" in told
    assert "Duration: " in told
    assert " months" in told


def test_a_schema_that_is_wrong_is_refused_when_the_vault_is_opened(loans: Shell) -> None:
    (loans.folder / "features.toml").write_text(SCHEMA.replace("high = 6", "high = 0.5"))
    with pytest.raises(ContextError, match=r"features.toml, feature 'Duration': there are|the present value 1 of node"):
        vault_file(loans).context()
    (loans.folder / "features.toml").write_text(SCHEMA.replace('column = "b"', 'column = "z"'))
    with pytest.raises(ContextError, match=r"features.toml, feature 'Guarantor': column 'z' does not exist"):
        vault_file(loans).context()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('immutable_features = ["Size"]', "feature 'Size' does not exist; choose one of Duration, Guarantor, Origin"),
        ("desired = { only = [1] }", r"desired is a class, a list of classes, or \{ not = \[classes\] \}"),
        ("desired = [0, 1, 2]", "name some, but not all, of 0 to 2"),
        ("desired = { not = [7] }", "name some of 0 to 2"),
    ],
)
def test_what_is_actionable_is_checked(loans: Shell, settings: str, words: str) -> None:
    path = loans.folder / "vault.toml"
    path.write_text(f"{path.read_text()}\n[actionable]\n{settings}\n")
    file = vault_file(loans)
    with pytest.raises(SettingsError, match=words):
        file.method(file.context())


@pytest.mark.parametrize("rule", ["recourse", "one-hop", "small-sets", "ladders"])
def test_features_are_immutable_by_name_and_classes_come_in_sets(loans: Shell, rule: str) -> None:
    path = loans.folder / "vault.toml"
    chosen = path.read_text().replace("# candidates", f'candidates = "{rule}" # ')
    path.write_text(f'{chosen}\n[actionable]\nimmutable_features = ["Duration"]\ndesired = {{ not = 0 }}\n')
    file = vault_file(loans)
    context = file.context()
    method = file.method(context)
    assert method.utility.desired == (1, 2)
    assert method.candidates.allowed.immutable_features == {0}
    offered = {one.change.feature for node in range(12) for one in method.candidates.propose(context, node).changes}
    assert "Duration" not in offered
    assert offered == {"Guarantor"} or rule != "recourse"
    assert file.vault().method == method


def test_features_have_the_names_of_the_header_without_a_schema(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(f'{path.read_text()}\n[actionable]\nimmutable_features = ["b", 3, "4"]\n')
    file = vault_file(shell)
    assert file.method(file.context()).candidates.allowed.immutable_features == {1, 3, 4}
    path.write_text(path.read_text().replace('"b"', '"log_views"'))
    changed = vault_file(shell)
    with pytest.raises(SettingsError, match="feature 'log_views' does not exist; choose one of a, b, c, d, e"):
        changed.method(changed.context())


def test_recourse_needs_a_schema(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('candidates = "small-sets"', 'candidates = "recourse"'))
    file = vault_file(shell)
    with pytest.raises(
        SettingsError, match=r"method.candidates = 'recourse' needs a schema of features; name it as pub"
    ):
        file.method(file.context())
