"""Work is kept cell by cell, goes on where it stopped, and does not depend on the number of processes."""

from pathlib import Path

import numpy as np
import pytest

from privcfs import Method
from privcfs.errors import SettingsError
from privcfs.public.candidates import RULES
from privcfs_lab.experiments import EXPERIMENTS
from privcfs_lab.measuring import study as study_module
from privcfs_lab.measuring.measure import RECORD, measure
from privcfs_lab.measuring.provenance import code_digest
from privcfs_lab.measuring.study import Cell, Study

EDGES = Method(candidates=RULES["edges-only"])
CELLS = [Cell(name, "borderline", share, EDGES) for name in ("cora", "citeseer") for share in (0.5, 1.0)]


def test_finished_cells_are_read_and_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    study = Study((0,), 1, tmp_path, seen.append, most=3)
    first = study.measure(CELLS[:2])
    assert len(seen) == 2

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study_module, "measure", interrupted)
    again = study.measure(CELLS[:2])
    assert len(seen) == 2
    for cell in CELLS[:2]:
        assert np.array_equal(first[cell], again[cell])
    with pytest.raises(KeyboardInterrupt):
        study.measure(CELLS)


def test_an_interrupted_study_keeps_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study((0,), 1, tmp_path, most=2)
    real, left = measure, [3]

    def until_interrupted(*words: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(study_module, "measure", until_interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.measure(CELLS)
    assert len(list(tmp_path.rglob("*.npy"))) == 1
    left[0] = 100
    assert set(study.measure(CELLS)) == set(CELLS)
    assert left[0] == 100 - 2 * 3


def test_two_processes_give_the_same_records_as_one(tmp_path: Path) -> None:
    one = Study((0,), 1, None, most=3).measure(CELLS)
    two = Study((0,), 2, tmp_path, most=3).measure(CELLS)
    for cell in CELLS:
        assert one[cell].dtype == RECORD
        for name in RECORD.names or ():
            assert np.allclose(one[cell][name], two[cell][name], atol=1e-12), name


def test_a_change_of_deciding_code_starts_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study((0,), 1, tmp_path, most=2)
    study.measure(CELLS[:1])
    assert (tmp_path / code_digest(Cell)).is_dir()
    monkeypatch.setattr(study_module, "code_digest", lambda *_: "changed")
    study.measure(CELLS[:1])
    assert len(list(tmp_path.rglob("*.npy"))) == 2


def test_a_missing_data_set_is_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRIVCFS_DATA", str(tmp_path))
    assert Study().at_hand(["cora", "facebook"]) == ("cora",)
    assert "facebook is left out: data file" in capsys.readouterr().out.replace("\n", " ")
    with pytest.raises(SettingsError, match="none of facebook is at hand; set PRIVCFS_DATA"):
        Study().at_hand(["facebook"])


def test_a_missing_data_set_leaves_a_committed_page_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRIVCFS_DATA", str(tmp_path))
    with pytest.raises(SettingsError, match="none of arxiv-core, coauthor-physics is at hand"):
        EXPERIMENTS["transfer"].run(Study())


def test_training_is_kept_between_runs(tmp_path: Path) -> None:
    model = Study((1,), 1, tmp_path).simulation("cora", 1).model
    study_module._simulation.cache_clear()
    (kept,) = tmp_path.rglob("cora-1-all-edges.safetensors")
    stamp = kept.stat().st_mtime_ns
    assert np.array_equal(Study((1,), 1, tmp_path).simulation("cora", 1).model.first, model.first)
    assert kept.stat().st_mtime_ns == stamp
