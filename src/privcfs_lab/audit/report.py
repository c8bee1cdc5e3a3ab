"""The audit as one HTML page that a reviewer can read without anything else."""

import io
from collections.abc import Mapping, Sequence
from html import escape

from privcfs.cli.page import STYLE
from privcfs_lab.figures.page import Estimate, Page, Value, save_figure

VERDICTS = ("within", "verdict")
BROKEN = ("no", "BREACH")
MORE_STYLE = """
main { max-width: 76rem; } section { margin-bottom: 1rem; }
table { border-collapse: collapse; font-size: .82rem; width: 100%; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { position: sticky; top: 0; background: var(--paper); } td.number { text-align: right; white-space: nowrap; }
tr.broken td { background: #fbe3e1; } .good { border-left: .35rem solid #1d7a46; } .good p { margin: 0; }
.tag { font-weight: 600; } svg text { font: inherit; } figure svg { max-width: 56rem; }
@media print { section { break-inside: avoid-page; } th { position: static; } }
"""


def breaches(page: Page) -> list[str]:
    """The rows of a page that break their bound, by what they begin with; a page that judges nothing breaks its own."""
    names = [column.name for column in page.columns]
    verdicts = [position for position, name in enumerate(names) if name in VERDICTS]
    if verdicts and not _judged(page):
        return ["nothing was judged"]
    broken = [row for row in page.rows if any(row[position] in BROKEN for position in verdicts)]
    return [", ".join(str(cell) for cell in row[:3] if cell is not None) for row in broken]


def html(pages: Mapping[str, Page], depth: str, made: str) -> str:
    """A verdict first, then every part with its words, figures and table."""
    found = {name: breaches(page) for name, page in pages.items()}
    count = sum(len(rows) for rows in found.values())
    verdict = f"{count} breaches" if count else "No breach"
    rows = sum(_judged(page) for page in pages.values())
    lead = f"{verdict} in {rows:,} judged rows. Depth: {depth}. {made}"
    contents = "".join(
        f'<li><a href="#{name}">{escape(page.title)}</a>: {_tag(found[name])} in {_judged(page)} judged rows</li>'
        for name, page in pages.items()
    )
    listed = "".join(f"<li>{escape(name)}: {escape(row)}</li>" for name, broken in found.items() for row in broken)
    banner = f"<ul>{listed}</ul>" if count else "<p>Every check held, and every broken twin was rejected.</p>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>privcfs audit: {escape(verdict)}</title><style>{STYLE}{MORE_STYLE}</style></head><body><main>
<h1>privcfs audit</h1><p class="lead">{escape(lead)}</p>
<section class="{"warn" if count else "good"}">{banner}</section>
<section><h2>What is claimed</h2><p>For any two private graphs over the same public context, the probabilities of any
release differ by a factor of at most e^epsilon; prices of several releases add up. A release that reads own edges has
the same law on graphs that agree at its target, and is paid on that node's account; advice tells a person nothing
about edges that are not hers. A sketch tells about one edge no more than its price. What follows tries to refute that:
 by exact comparison, by asking only, by searching for the worst neighbour, by known attacks, by asking often, by
 betting against the accounts, and by looking at what stands beside the answer. Every check also meets a deliberately
 broken twin, which it must reject. The
 proofs are in docs/promise.md, what is not claimed in docs/limits.md.</p></section>
<section><h2>Parts</h2><ul>{contents}</ul></section>
{"".join(_section(name, page) for name, page in pages.items())}
</main></body></html>
"""


def _judged(page: Page) -> int:
    names = [column.name for column in page.columns]
    return sum(row[names.index(name)] is not None for name in VERDICTS if name in names for row in page.rows)


def _tag(broken: list[str]) -> str:
    return f'<span class="tag">{len(broken)} breaches</span>' if broken else "no breach"


def _section(name: str, page: Page) -> str:
    figures = "".join(_figure(page, number) for number in range(len(page.pictures)))
    shown = [position for position, column in enumerate(page.columns) if column.shown]
    head = "".join(f"<th>{escape(page.columns[position].name)}</th>" for position in shown)
    body = "".join(_row(page, row, shown) for row in page.rows)
    return (
        f'<section id="{name}"><h2>{escape(page.title)}</h2><p>{_emphasised(page.about)}</p>{figures}'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _row(page: Page, row: Sequence[Value], shown: list[int]) -> str:
    broken = any(row[position] in BROKEN and page.columns[position].name in VERDICTS for position in shown)
    cells = "".join(
        f"<td{' class=number' if isinstance(row[position], int | float | Estimate) else ''}>"
        f"{escape(page.columns[position].text(row[position]))}</td>"
        for position in shown
    )
    return f"<tr{' class=broken' if broken else ''}>{cells}</tr>"


def _figure(page: Page, number: int) -> str:
    picture, file = page.pictures[number], io.StringIO()
    save_figure(picture.draw(), file)
    drawn = file.getvalue()
    words = escape(picture.words)
    label = f'<svg role="img" aria-label="{words}"'
    return f"<figure>{drawn[drawn.index('<svg') :].replace('<svg', label, 1)}<figcaption>{words}</figcaption></figure>"


def _emphasised(text: str) -> str:
    """Words between stars become emphasised, code between ticks becomes code."""
    for mark, tag in (("*", "em"), ("`", "code")):
        parts = (escape(text) if mark == "*" else text).split(mark)
        text = "".join(f"<{tag}>{part}</{tag}>" if number % 2 else part for number, part in enumerate(parts))
    return text
