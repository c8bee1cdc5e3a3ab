"""What others install: a wheel and a source distribution of one version, which work in an environment of their own."""

import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import privcfs

ROOT = Path(__file__).parent.parent


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_the_version_has_one_source(built: Path) -> None:
    names = sorted(path.name for path in built.iterdir())
    assert names == [f"privcfs-{privcfs.__version__}-py3-none-any.whl", f"privcfs-{privcfs.__version__}.tar.gz"]
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]
    assert f"\nversion: {privcfs.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {privcfs.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_wheel_has_both_packages_their_data_and_types_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = ZipFile(wheel).namelist()
    about = f"privcfs-{privcfs.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"privcfs", "privcfs_lab", about}
    for name in ("py.typed", "embedded/cora-edges.npz", "service/console/index.html", "cli/__init__.py"):
        assert f"privcfs/{name}" in names
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        held = {name.split("/", 1)[1] for name in sources.getnames() if "/" in name}
    assert {"pyproject.toml", "LICENSE", "README.md", "Makefile", "mkdocs.yml", "tests/conftest.py"} <= held


def test_it_works_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    """With the core's dependencies alone, far from this checkout."""
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env/bin"
    run(binaries / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)
    assert run(binaries / "privcfs", "--version", cwd=tmp_path).strip() == f"privcfs {privcfs.__version__}"
    assert "Picture: privcfs-demo/release.html" in run(binaries / "privcfs", "demo", cwd=tmp_path)
    listed = run(binaries / "pip", "list", "--format", "freeze", cwd=tmp_path).lower()
    assert not [name for name in ("torch", "pandas", "fastapi", "ray") if f"\n{name}==" in listed]
