"""The commands of `privcfs`."""

import json
from fractions import Fraction
from pathlib import Path
from secrets import token_hex
from typing import Annotated

import typer
from rich.progress import Progress

import privcfs
from privcfs.cli.demo import run_demo
from privcfs.cli.output import console, emit, failures_told, learning, odds, say, warn
from privcfs.cli.spending import YesOption, agree_to_one
from privcfs.embedded import FILES, NAMES, load_dataset
from privcfs.errors import BudgetExhausted, InputError, SettingsError, VerificationFailed
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.certificates import verify as check
from privcfs.gate.certificates import verify_advice
from privcfs.gate.contracts import FixedPrice, Pure
from privcfs.gate.entries import enter
from privcfs.gate.ledger import SQLITE
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import going_beyond
from privcfs.gate.public_guess import public_guess
from privcfs.gate.questions.question import OWNER
from privcfs.gate.questions.suggestions import MOST_SUGGESTIONS
from privcfs.gate.snapshots import ONE_EDGE, Noise, publish_snapshot
from privcfs.owner.account import exists
from privcfs.owner.template import template
from privcfs.owner.vault_file import VaultFile, read_vault_file
from privcfs.public.advice import Advice, is_advice
from privcfs.public.confidence import MEANING, after_verdict, in_percent, said
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.public_answer import PublicAnswer
from privcfs.public.release import Release
from privcfs.public.words import in_words

app = typer.Typer(
    help="Private counterfactual explanations for graph neural networks.\n\n"
    "The owner writes a vault file (init) and watches the budget; an analyst asks (explain); a person gets advice "
    "about herself (advise). "
    "Try `privcfs demo` first.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VaultOption = Annotated[Path, typer.Option("--vault", help="The owner's vault file.", show_default=True)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of words.")]
AnalystOption = Annotated[str, typer.Option(help="Who asks: limits and request ids are per analyst.")]
RequestOption = Annotated[
    str | None, typer.Option(help="Asking again with the same id returns the same answer and pays nothing.")
]
VAULT = Path("vault.toml")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"privcfs {privcfs.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Options that stand before a command."""


@app.command()
def demo(
    case: Annotated[
        str,
        typer.Option(
            "--case", "--dataset", help=f"{' or '.join(NAMES)}: papers; or loan: clients of a bank that is made up."
        ),
    ] = "cora",
    target: Annotated[str | None, typer.Option(help="Node to explain; each graph has a default.")] = None,
    epsilon: Annotated[str, typer.Option(help="Price of the release.")] = "1",
    folder: Annotated[Path, typer.Option(help="Where ledger, certificate and page go.")] = Path("privcfs-demo"),
    as_json: JsonOption = False,
) -> None:
    """Release one private counterfactual on embedded data and show what it says, costs and hides."""
    run_demo(case, target, epsilon, folder, as_json)


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="Where to write the vault file.")] = VAULT,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file, and with it the graph id.")] = False,
    example: Annotated[
        bool,
        typer.Option("--example", help="Also write files to practise with: papers of Cora, citations as the secret."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a commented vault file for your own graph."""
    if path.exists() and not force:
        raise SettingsError(f"{path} exists; its graph id ties a graph to its budget. Use --force to replace it.")
    try:
        if example:
            write_example(path.parent)
        path.write_text(template("features.npz" if example else "features.csv"), encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{error.filename or path} cannot be written: {error.strerror}.") from None
    if as_json:
        emit({"written": str(path)})
        return
    if example:
        say(f"Wrote {path} and, beside it, {', '.join(FILES)}: 2,708 papers, whose citations play the secret.")
        say("Half of the citations were drawn as the public pairs. That protects nobody: practise with it, no more.")
        say(f"Then ask: privcfs guess 42 --vault {path}")
        return
    say(f"Wrote {path}. Put your files where it says, then ask: privcfs explain NODE --epsilon 1 --vault {path}")
    say("Your model is kept: it is not published, and nothing is promised about it. If answers must not tell about it,")
    say('set model_is = "secret" and make a public model that guides: privcfs train --labels labels.csv')


def write_example(folder: Path) -> None:
    """Cora as an owner's files; none that is there already is replaced."""
    for name in FILES:
        if (folder / name).exists():
            raise SettingsError(f"{folder / name} exists; write the example into an empty folder.")
    load_dataset("cora").write(folder)


BeyondOption = Annotated[
    Path | None,
    typer.Option(help="JSON of an earlier release that the answer should contain: a search in stages.", metavar="FILE"),
]


@app.command()
def explain(
    targets: Annotated[list[str], typer.Argument(help="Nodes to explain, by number or public name.")],
    epsilon: Annotated[str, typer.Option(help="Price of each release, such as 1 or 0.5.")],
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    request_id: RequestOption = None,
    suggestions: Annotated[
        int,
        typer.Option(help="Answers per node that share no element, for the one price.", min=1, max=MOST_SUGGESTIONS),
    ] = 1,
    beyond: BeyondOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pay for one private counterfactual per node and show it. With --json: one object per line."""
    if beyond is not None and (suggestions > 1 or len(targets) > 1):
        raise InputError("beyond continues one release; ask for one target, without suggestions.")
    start = None if beyond is None else _read_release(beyond).intervention
    if request_id is not None and len(targets) > 1:
        raise InputError("request-id names one release; ask for one target at a time, or leave it out.")
    file = read_vault_file(vault)
    opened = file.vault(progress=learning)
    warn(file.account.other_limit(opened.ledger))
    context = opened.context
    nodes = [context.node(target) for target in targets]
    spent = opened.ledger.losses().everything if opened.charged_at(nodes) else opened.balance().spent
    first = request_id if request_id is None or suggestions == 1 else f"{request_id}/1"
    charged = opened.charged_at(nodes)
    cost = opened.cost(epsilon) if charged else len(nodes) * opened.cost(epsilon)
    agree_to_one(cost, opened.ledger, analyst, first, yes, charged)
    progress = Progress(console=console, transient=True, disable=as_json or len(nodes) < 3)
    with failures_told(opened), progress:
        for done, node in enumerate(progress.track(nodes, description="Releasing")):
            try:
                if suggestions == 1:
                    found = [opened.release(node, epsilon, analyst=analyst, request_id=request_id, beyond=start)]
                else:
                    found = opened.suggest(node, epsilon, suggestions, analyst=analyst, request_id=request_id)
            except BudgetExhausted as error:
                released = f"{done} of {len(nodes)} nodes were released; {context.label(node)} was not."
                raise BudgetExhausted(f"{error} Before that, {released}" if done else str(error)) from None
            for release in found:
                if as_json:
                    emit(release.to_dict())
                else:
                    say(f"Node {release.target_name}, epsilon {show(release.epsilon)}:")
                    for line in in_words(release.intervention):
                        say(f"  {line}")
                    say(f"  request id {release.request_id}")
                    if release.confidence is not None:
                        say(f"  flips the decision with probability {release.confidence:.2f}, by public data alone")
            if suggestions > 1 and not as_json:
                together = [f"{sure:.2f}" for sure in opened.confidences(found) if sure is not None]
                if together:
                    say(f"  given all of them, they flip it with probability {', '.join(together)}")
            if not as_json:
                say(f"  (for nothing, public data alone suggest: {_guess_in_words(opened.guess(node))})")
    if not as_json:
        balance = opened.balance()
        if (opened.ledger.losses().everything if charged else balance.spent) == spent:
            say("Already paid: the same release as before.")
        if suggestions > 1:
            each, whole = release.epsilon, parse_epsilon(epsilon)
            unspent = whole - suggestions * each
            rest = f"; {show(unspent)} of {show(whole)} is not spent, because it cannot be divided" if unspent else ""
            say(f"{suggestions} suggestions at epsilon {show(each)} each{rest}.")
        say(f"Guarantee of each release: {release.guarantee}.")
        for node in charged:
            say(_account_of_node(context.label(node), opened.ledger.node_balance(node)))
        rest = "" if balance.left is None else f", {show(balance.left)} left"
        account = "Questions about the whole graph" if charged else "Budget"
        say(f"{account}: {balance.unit} {show(balance.spent)} spent{rest}.")


@app.command()
def confirm(
    certificate: Annotated[Path, typer.Argument(help="JSON of one release, as `explain --json` prints it.")],
    epsilon: Annotated[str, typer.Option(help="Price of the answer; the truth is told with odds e^epsilon.")],
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    request_id: RequestOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pay to learn whether a released change really flips the decision: a noisy yes or no."""
    release = _read_release(certificate)
    file = read_vault_file(vault)
    opened = file.vault(progress=learning)
    warn(file.account.other_limit(opened.ledger))
    agree_to_one(opened.cost(epsilon), opened.ledger, analyst, request_id, yes)
    with failures_told(opened):
        verdict = opened.confirm(release.target, release.intervention, epsilon, analyst=analyst, request_id=request_id)
    before = release.confidence
    after = None if before is None else after_verdict(before, verdict.flips, verdict.reliability)
    if as_json:
        emit({**json.loads(verdict.to_json()), "reliability": verdict.reliability, "confidence": said(after)})
        return
    say(f"Does it flip the decision on {verdict.target_name}: {verdict.intervention}?")
    say(f"{'Yes' if verdict.flips else 'No'}: such an answer is right with probability {verdict.reliability:.3f}.")
    if before is not None and after is not None:
        say(f"The probability that the change flips the decision was {before:.2f} before, and is {after:.2f} now.")
    say(f"Guarantee: {verdict.guarantee}.")


@app.command()
def select(
    targets: Annotated[list[str], typer.Argument(help="A public list of nodes, by number or name.")],
    epsilon: Annotated[str, typer.Option(help="Price of the choice.")],
    vault: VaultOption = VAULT,
    analyst: AnalystOption = OWNER,
    request_id: RequestOption = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pay for a private choice of whom to explain: one node of the list, close calls being likelier."""
    file = read_vault_file(vault)
    opened = file.vault(progress=learning)
    warn(file.account.other_limit(opened.ledger))
    agree_to_one(opened.cost(epsilon), opened.ledger, analyst, request_id, yes, opened.charged_at(targets))
    with failures_told(opened):
        chosen = opened.select(targets, epsilon, analyst=analyst, request_id=request_id)
    if as_json:
        emit(json.loads(chosen.to_json()))
        return
    say(f"Node {chosen.target_name}. Guarantee: {chosen.guarantee}.")


@app.command()
def budget(
    vault: VaultOption = VAULT,
    analyst: Annotated[str | None, typer.Option(help="Show one analyst's part.")] = None,
    export_head: Annotated[Path | None, typer.Option(help="Write the ledger's newest row, to keep elsewhere.")] = None,
    check_head: Annotated[Path | None, typer.Option(help="Refuse a ledger that lacks the row in this file.")] = None,
    set_limit: Annotated[
        str | None, typer.Option(help="The owner's decision: change the total limit; never below what is spent.")
    ] = None,
    set_analyst_limit: Annotated[
        str | None, typer.Option(help="The owner's decision: change the limit of each analyst.")
    ] = None,
    set_node_limit: Annotated[
        str | None, typer.Option(help="The owner's decision: change the limit of each node's account.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="Show the account of one node, by number or public name.")] = None,
    price: Annotated[
        str | None, typer.Option(help="Show how many more releases at this epsilon fit; 1, or the least price.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is spent, held and left; check the ledger's chain on the way."""
    file = read_vault_file(vault)
    epsilon = file.checked_price(price)
    number = None if node is None else file.context().node(node)
    if set_node_limit is not None:
        file.refuse_limit_per_node()
    if export_head is not None:
        exported = HeadFile(export_head)
        ledger = file.account.open_as_it_is(exported.read(), trusting=exported)
        ledger.keep_head(exported)
    elif any(one is not None for one in (set_limit, set_analyst_limit, set_node_limit)):
        ledger = file.account.open_as_it_is()
        before = ledger.limit
        total = before.total if set_limit is None else set_limit
        each = before.per_analyst if set_analyst_limit is None else set_analyst_limit
        per_node = before.per_node if set_node_limit is None else set_node_limit
        ledger.change_limit(Limit.of(total, each, before.contract, per_node=per_node, period=before.period))
        file.account.write_limit(ledger.limit)
        file = read_vault_file(vault)
        if not as_json:
            say(f"Limits changed in the ledger{'' if file.account.other_limit(ledger) else f' and in {vault}'}.")
    else:
        ledger = file.account.open()
    if check_head is not None:
        kept = HeadFile(check_head).read()
        if kept is None:
            raise InputError(f"head file {check_head} does not exist; give one that --export-head wrote.")
        ledger.verify(kept)
    balance, left, whose_limit = _account(file, ledger, analyst)
    contract = ledger.limit.contract
    fixed = isinstance(contract, FixedPrice)
    cost = Fraction(1) if fixed else contract.cost(file.dearest_mechanism(), epsilon)
    more = int(left / cost) if cost else None
    if as_json:
        fields = {**balance.to_dict(), "left": show(left), "limited_by": whose_limit, "analyst": analyst}
        fields |= {"head": json.loads(ledger.head().to_json())}
        means = {"meaning": ledger.meaning(), "contract": contract.to_dict()}
        if isinstance(contract, Pure):
            means["losses"] = ledger.losses().to_dict()
        if number is not None:
            means["node"] = ledger.node_balance(number).to_dict()
        emit({**fields, **means, "price": show(epsilon), "more_releases": more})
        return
    whose = "all analysts" if analyst is None else analyst
    say(
        f"Budget of {whose}: {balance.unit} {show(balance.spent)} spent in {balance.answers} answers "
        f"({show(balance.held)} held)"
    )
    at, count = "" if fixed else f" at epsilon {show(epsilon)}", "any number of" if more is None else more
    own = "No limit of their own" if balance.limit is None else f"Limit {show(balance.limit)}"
    of_all = " of the limit of all analysts" if analyst is not None and whose_limit == "everyone" else ""
    say(f"{own}, left {show(left)}{of_all}: {count} more releases{at}.")
    say(f"The limit of all together means: {ledger.meaning()}.")
    if isinstance(contract, Pure) and not ledger.narrower():
        if ledger.limit.per_node is not None:
            say(ledger.losses().in_words())
        everything = ledger.losses().everything
        say(f"All of it together can move anyone's odds about the graph by a factor of at most {odds(everything)}.")
    if node is not None and number is not None:
        say(_account_of_node(node, ledger.node_balance(number)))
    if note := file.account.other_limit(ledger):
        say(note)
    say("Ledger: chain valid.")


def _account_of_node(name: str, balance: Balance) -> str:
    """One node's account in a sentence."""
    left = "nodes have no accounts here" if balance.left is None else f"{show(balance.left)} left"
    return f"Account of node {name}: {balance.unit} {show(balance.spent)} spent, {left}."


def _account(file: VaultFile, ledger: Ledger, analyst: str | None) -> tuple[Balance, Fraction, str]:
    """The account of all analysts or of one, what is left of it, and whose limit that is."""
    if analyst is None:
        balance = ledger.balance()
        return balance, balance.left or Fraction(0), "everyone"
    cap = _cap_of(file, analyst)
    return ledger.account_of(analyst, cap), *ledger.left_for(analyst, cap)


def _cap_of(file: VaultFile, analyst: str) -> Fraction | None:
    """The most that the service's keys allow to an analyst, where all of this analyst's keys have a cap."""
    url = file.service().database
    if url.startswith(SQLITE) and not exists(Path(url.removeprefix(SQLITE))):
        return None
    try:
        from privcfs.service.database import open_database
        from privcfs.service.keys import Keys, caps_of_analysts
    except ImportError:  # The extra for the service is not installed, so there are no keys.
        return None
    return caps_of_analysts(Keys(open_database(url)).all()).get(analyst)


@app.command(name="enter")
def enter_disclosure(
    what: Annotated[str, typer.Argument(help="What was disclosed, in words: they name the entry.")],
    epsilon: Annotated[str, typer.Option(help="What it cost.")],
    delta: Annotated[str, typer.Option(help="Its delta; needs the contract approximate.")] = "0",
    adjacency: Annotated[str, typer.Option(help="Between what its guarantee holds.")] = ONE_EDGE,
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Enter a disclosure made elsewhere, such as a model trained with differential privacy. For the owner."""
    file = read_vault_file(vault)
    ledger = file.account.open()
    enter(ledger, what, epsilon, delta, adjacency=adjacency)
    if as_json:
        emit({**ledger.balance().to_dict(), "entered": what})
        return
    say(f"Entered: {what}, epsilon {epsilon}, delta {delta}, for {adjacency}.")


@app.command()
def snapshot(
    epsilon: Annotated[str, typer.Option(help="Price, a promise for one edge; below about 6 it is mostly noise.")],
    pairs: Annotated[
        int | None,
        typer.Option(help="How many pairs to publish (LapGraph); a public number. Without it: EdgeRand.", min=1),
    ] = None,
    write: Annotated[Path, typer.Option(help="Where the pairs go.")] = Path("public_edges.csv"),
    vault: VaultOption = VAULT,
    request_id: RequestOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pay for a private snapshot where there are no public pairs. For the owner, before a vault serves."""
    file = read_vault_file(vault)
    graph, names = file.graph_without_context()
    if write.exists() and request_id is None:
        raise SettingsError(f"{write} exists; name another file, so that no public snapshot is lost.")
    if not write.parent.is_dir():
        raise SettingsError(f"folder {write.parent} does not exist; make it first.")
    ledger = file.account.open(graph)
    noise, name = Noise(pairs), request_id or token_hex(16)
    drawn = publish_snapshot(graph, ledger, epsilon, noise, request_id=name)
    rows = [f"{u},{w}" if names is None else f"{names[u]},{names[w]}" for u, w in drawn.tolist()]
    write.write_text("\n".join(["source,target", *rows]) + "\n", encoding="utf-8")
    if as_json:
        emit({"written": str(write), "pairs": len(drawn), "noise": noise.name, "epsilon": epsilon, "request_id": name})
        return
    say(f"Wrote {len(drawn):,} pairs to {write} ({noise.name}, epsilon {epsilon} for one edge, request id {name}).")
    say("Now set snapshot_is_private = true in the vault file.")


@app.command()
def candidates(
    target: Annotated[str, typer.Argument(help="Node, by number or public name.")],
    vault: VaultOption = VAULT,
    most: Annotated[int, typer.Option(help="How many to list; the size is always shown.", min=0)] = 10,
    as_json: JsonOption = False,
) -> None:
    """Show the public list that a release would be drawn from. Costs nothing and reads no edge."""
    file = read_vault_file(vault)
    context = file.context()
    proposed = file.method(context).candidates.propose(context, context.node(target)).named(context)
    if as_json:
        emit(proposed.to_dict(most))
        return
    listed = [proposed[position] for position in range(min(most, len(proposed)))]
    say(f"Node {context.label(proposed.target)}: {len(proposed):,} candidates, from public data alone.")
    say(
        f"At most {proposed.caps.pairs} of {len(proposed.deletions) + len(proposed.additions)} pairs with at most "
        f"{proposed.caps.features} of {proposed.feature_operations} "
        f"{'changes of features' if proposed.changes else 'features'}."
    )
    for item in listed:
        say(f"  {item}")
    if len(listed) < len(proposed):
        say(f"  ... and {len(proposed) - len(listed):,} more (--most)")


@app.command()
def guess(
    targets: Annotated[list[str], typer.Argument(help="Nodes, by number or public name.")],
    epsilon: Annotated[str, typer.Option(help="Show beside it what to expect of a release at this price.")] = "1",
    vault: VaultOption = VAULT,
    as_json: JsonOption = False,
) -> None:
    """Show what public data alone suggest, and what a paid answer would add. Costs nothing and reads no edge."""
    file = read_vault_file(vault)
    context = file.context()
    method = file.believing_method(context, learning)
    price = file.checked_price(epsilon)
    for node in [context.node(target) for target in targets]:
        proposed = method.candidates.propose(context, node)
        position, confidence = public_guess(context, proposed, method)
        labels = context.labels({node, *proposed[position].nodes})
        found = PublicAnswer(node, proposed[position], confidence, labels)
        prepared = method.prepare(context, proposed, price)
        expected = prepared.expected
        if as_json:
            emit({**found.to_dict(), "epsilon": "0", "price": show(price), "expected_of_a_release": said(expected)})
            continue
        say(f"Node {context.label(node)}, epsilon 0: {_guess_in_words(found)}")
        if sum(weight > 0 for weight in getattr(prepared.mechanism, "base", ())) == 1:
            say(f"  A release at epsilon {show(price)} would be this guess: at this price paying adds nothing.")
        elif expected is not None:
            say(f"  A release at epsilon {show(price)} would flip the decision with probability {expected:.2f}.")
    if not as_json:
        say(MEANING)


def _guess_in_words(found: PublicAnswer) -> str:
    """A free answer and how sure it is."""
    return f"{', '.join(in_words(found.intervention))}{in_percent(found.confidence)}"


# What a service says beside a certificate, in the same JSON object.
SAID_BESIDE = {"paid", "left", "limited_by", "in_words", "meaning"}


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="JSON of one release, as `explain --json` prints it.")],
    vault: VaultOption = VAULT,
    beyond: BeyondOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the certificate of a release, or of advice, against the ledger and the public context."""
    file, text = read_vault_file(vault), _read_certificate(certificate)
    answer: Advice | Release
    if is_advice(text):
        answer = Advice.from_json(text)
        checks = verify_advice(answer, file.vault(progress=learning))
    else:
        answer, context = Release.from_json(text), file.context()
        method = file.method(context)
        if beyond is not None:
            method = going_beyond(_read_release(beyond).intervention, method)
        checks = check(answer, file.account.open(), context, method)
    fields = json.loads(text)
    beside = sorted((SAID_BESIDE & set(fields)) - set(answer.to_dict()))
    certified = {name: value for name, value in fields.items() if name not in beside}
    checks["the file has the fields of a certificate, as this program writes them"] = certified == answer.to_dict()
    if beside:
        warn(f"the file also has {', '.join(beside)}, which a service says beside a certificate; this was not checked.")
    failed = [name for name, good in checks.items() if not good]
    if as_json:
        emit({"valid": not failed, "checks": checks})
    else:
        for name, good in checks.items():
            say(f"{'yes' if good else 'NO '}  {name}")
    if failed:
        raise VerificationFailed(f"certificate is not valid; these do not hold: {'; '.join(failed)}.")


def _read_release(certificate: Path) -> Release:
    return Release.from_json(_read_certificate(certificate))


def _read_certificate(certificate: Path) -> str:
    try:
        return certificate.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"certificate {certificate} cannot be read; give the JSON file of one release.") from None
