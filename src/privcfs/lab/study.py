"""Runs the cells of an experiment on all cores, keeps each as it is done, and goes on where it stopped.

What is kept is named after the cell, the data and the source code that decides it: a change of either starts afresh.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from typing import Any, final

import numpy as np

import privcfs
from privcfs.errors import SettingsError
from privcfs.gate.vault import Method
from privcfs.lab.datasets import load
from privcfs.lab.measure import Records, Scene, measure
from privcfs.lab.report import console
from privcfs.lab.simulate import Simulation, TrainedOn
from privcfs.lab.targets import POPULATIONS

SOURCE = Path(privcfs.__file__).parent
DECIDING = (
    "public",
    "private",
    "gate/mechanisms",
    "embedded",
    "lab/datasets",
    "lab/variants",
    *(f"lab/{name}.py" for name in ("inspection", "measure", "metrics", "simulate", "study", "targets", "training")),
)
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _silent(step: str) -> None:
    """No progress is shown."""


@final
@dataclass(frozen=True, slots=True)
class Cell:
    """What is measured for all seeds: data, population, disclosed share, method, and how it is drawn."""

    data: str
    population: str
    disclosed: float
    method: Method
    law: str = "one draw"
    trained_on: TrainedOn = "all edges"


@final
@dataclass(frozen=True, slots=True)
class Study:
    """Seeds, cores, and the folder in which finished work is kept."""

    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 1
    folder: Path | None = None
    progress: Callable[[str], None] = _silent
    most: int | None = None  # targets per cell, for slices

    def measure(self, cells: Iterable[Cell]) -> dict[Cell, Records]:
        """All records of each cell, seed after seed; cells that were done before are read."""
        cells = list(dict.fromkeys(cells))
        tasks = [(cell, seed) for cell in cells for seed in self.seeds]
        todo = [task for task in tasks if self._read(task) is None] if self.folder else tasks
        done: dict[tuple[Cell, int], Records] = {}
        for number, (task, records) in enumerate(self._run(todo), 1):
            done[task] = records
            self.progress(f"{number} of {len(todo)}: {task[0].data}, seed {task[1]}, {task[0].disclosed:.0%} disclosed")
        for task in tasks:
            if task not in done and (kept := self._read(task)) is not None:
                done[task] = kept
        return {cell: np.concatenate([done[cell, seed] for seed in self.seeds]) for cell in cells}

    def has(self, name: str) -> bool:
        """Whether the data set can be loaded here; says so if not."""
        try:
            load(name)
        except SettingsError as error:
            console.print(f"{name} is left out: {error}", highlight=False)
            return False
        return True

    def at_hand(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the data sets that can be loaded here; an error if there is none."""
        names = tuple(names)
        found = tuple(name for name in names if self.has(name))
        if not found:
            raise SettingsError(
                f"none of {', '.join(names)} is at hand; set PRIVCFS_DATA to the folder with data sets."
            )
        return found

    def simulation(self, name: str, seed: int) -> Simulation:
        """One seed, its trained weights kept."""
        return _simulation(name, seed, "all edges", self._kept(name))

    def _run(self, tasks: Sequence[tuple[Cell, int]]) -> Iterator[tuple[tuple[Cell, int], Records]]:
        """Tasks of one simulation go to one process, which trains and loads once."""
        groups = [list(group) for _, group in groupby(sorted(tasks, key=_simulation_key), _simulation_key)]
        if self.workers == 1:
            yield from ((task, self._task(task)) for group in groups for task in group)
            return
        for name in ONE_THREAD:
            os.environ.setdefault(name, "1")
        quietly: dict[str, Any] = {
            "initializer": signal,
            "initargs": (SIGINT, SIG_DFL),
        }  # an interrupted worker ends without a word
        with ProcessPoolExecutor(self.workers, get_context("spawn"), **quietly) as pool:
            quiet = Study(self.seeds, 1, self.folder, most=self.most)
            waiting = [pool.submit(quiet._group, group) for group in groups]
            for future in as_completed(waiting):
                yield from future.result()

    def _group(self, tasks: Sequence[tuple[Cell, int]]) -> list[tuple[tuple[Cell, int], Records]]:
        return [(task, self._task(task)) for task in tasks]

    def _task(self, task: tuple[Cell, int]) -> Records:
        cell, seed = task
        world = _simulation(cell.data, seed, cell.trained_on, self._kept(cell.data))
        scene = Scene.of(world.graph, world.context(cell.disclosed))
        targets = POPULATIONS[cell.population](world)[: self.most]
        records = np.concatenate([measure(scene, target, cell.method, cell.law, seed) for target in targets])
        records["margin"] = world.margins[records["target"]]
        if (path := self._path(task)) is not None:
            fresh = path.with_suffix(f".{os.getpid()}.npy")
            np.save(fresh, records)
            fresh.replace(path)
        return records

    def _read(self, task: tuple[Cell, int]) -> Records | None:
        path = self._path(task)
        return None if path is None or not path.exists() else np.load(path, allow_pickle=False)

    def _path(self, task: tuple[Cell, int]) -> Path | None:
        kept = self._kept(task[0].data)
        name = hashlib.sha256(repr((task, self.most)).encode()).hexdigest()[:20]
        return kept and kept / f"{task[1]}-{name}.npy"

    def _kept(self, data: str) -> Path | None:
        """The folder for this version of the code and of the data."""
        if self.folder is None:
            return None
        kept = self.folder / deciding_source() / f"{data}-{_digest(data)}"
        kept.mkdir(parents=True, exist_ok=True)
        return kept


@lru_cache(maxsize=16)
def _digest(data: str) -> str:
    return load(data).digest()


@lru_cache(maxsize=4)
def _simulation(name: str, seed: int, trained_on: TrainedOn, keep: Path | None) -> Simulation:
    return Simulation(name, seed, trained_on, keep)


def _simulation_key(task: tuple[Cell, int]) -> tuple[str, int, str]:
    return task[0].data, task[1], task[0].trained_on


@lru_cache(maxsize=1)
def deciding_source() -> str:
    """A digest of the code that decides a measurement; pages, figures and the service do not."""
    whole = hashlib.sha256()
    places = [SOURCE / name for name in DECIDING]
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    for path in sorted(path for path in files if path.suffix in (".py", ".npz", ".safetensors")):
        whole.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()[:12]
