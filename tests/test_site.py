"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, and its tutorials work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TUTORIALS = ("index.md", "tutorials/owner.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_documentation_can_be_reached(site: Path) -> None:
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]))
    listed = {
        f"results/{name}" for name in re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/results/README.md").read_text())
    }
    assert pages <= named | listed
    assert (site / "index.html").exists()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?([^\s\">]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]* rel=\"?(?:stylesheet|icon|preload)\"?[^>]* href=\"?([^\s\">]+)", page.read_text()
        )
        assert not [address for address in loaded if "//" in address], page.name


def test_the_reference_has_everything_that_is_exported(site: Path) -> None:
    import privcfs

    text = "".join(path.read_text() for path in (site / "api").glob("*.html"))
    for name, home in privcfs._HOMES.items():
        assert f'id="privcfs.{home}.{name}"' in text or name == "PrivcfsError", name


@pytest.mark.parametrize("page", TUTORIALS)
def test_the_commands_of_a_tutorial_run_in_their_order(page: str, tmp_path: Path) -> None:
    """As a newcomer types them, up to the service, in an empty folder."""
    text = (ROOT / "docs" / page).read_text()
    lines = [
        line.split("#")[0].strip()
        for block in re.findall(r"```\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
    ]
    run = f"{sys.executable} -c 'from privcfs.cli import main; main()'"
    asked = [line for line in lines if line.startswith("privcfs ") and not line.startswith("privcfs serve")]
    assert len(asked) >= 4
    for line in asked:
        if line.startswith("privcfs advise"):
            vault = tmp_path / "vault.toml"
            vault.write_text(vault.read_text().replace("# people_know_their_edges", "people_know_their_edges"))
        done = subprocess.run(line.replace("privcfs", run, 1), shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
