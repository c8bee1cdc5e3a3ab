"""The package as it is imported: quick, light, and with every exported name where it says."""

import subprocess
import sys

import pytest

import privcfs

QUICK = 0.25  # seconds of processor time
HEAVY = ("torch", "pandas", "matplotlib", "fastapi", "sqlalchemy", "pyarrow", "ray")


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_takes_no_time_to_speak_of() -> None:
    script = "import time; start = time.process_time(); import privcfs; print(time.process_time() - start)"
    assert min(float(run(script)) for _ in range(3)) < QUICK


def test_whatever_is_exported_needs_no_heavy_library() -> None:
    script = f"import sys; from privcfs import *; print(*(name for name in {HEAVY} if name in sys.modules))"
    assert run(script).split() == []


@pytest.mark.parametrize("name", privcfs.__all__)
def test_a_name_is_exported_from_where_it_is_defined(name: str) -> None:
    item = getattr(privcfs, name)
    assert item.__module__ == f"privcfs.{privcfs._HOMES[name]}"
    assert name in dir(privcfs)


def test_a_name_that_is_not_exported_is_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'privcfs' has no attribute 'Valut'"):
        _ = privcfs.Valut
