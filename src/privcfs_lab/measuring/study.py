"""Runs the work of an experiment on all cores, keeps each part as it is done, and goes on where it stopped.

What is kept is named after the work, the data and the source code that decides it: a change of either starts afresh.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from typing import Any, TypeVar, final

import numpy as np

from privcfs.errors import SettingsError
from privcfs.gate.method import Method
from privcfs_lab.datasets import load
from privcfs_lab.figures.page import console
from privcfs_lab.measuring.measure import Records, Scene, measure
from privcfs_lab.measuring.provenance import code_digest
from privcfs_lab.measuring.simulate import Simulation, TrainedOn
from privcfs_lab.measuring.targets import POPULATIONS

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def _silent(step: str) -> None:
    """No progress is shown."""


class Work(ABC):
    """What is computed for every seed: a frozen dataclass, so that its `repr` names it."""

    __slots__ = ()

    data: str
    trained_on: TrainedOn

    @abstractmethod
    def records(self, world: Simulation, most: int | None) -> Records:
        """One record for each target of this seed, of the first `most` targets if that is given."""

    @property
    def title(self) -> str:
        """For progress lines."""
        return self.data


@final
@dataclass(frozen=True, slots=True)
class Cell(Work):
    """What is measured for all seeds: data, population, disclosed share, method, and how it is drawn."""

    data: str
    population: str
    disclosed: float
    method: Method
    law: str = "one draw"
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"{self.data}, {self.disclosed:.0%} disclosed"

    def records(self, world: Simulation, most: int | None) -> Records:
        scene = Scene.of(world.graph, world.context(self.disclosed))
        targets = POPULATIONS[self.population](world)[:most]
        records = np.concatenate([measure(scene, target, self.method, self.law, world.seed) for target in targets])
        records["margin"] = world.margins[records["target"]]
        return records


W = TypeVar("W", bound=Work)
Task = tuple[Work, int]


@final
@dataclass(frozen=True, slots=True)
class Study:
    """Seeds, cores, and the folder in which finished work is kept."""

    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 1
    folder: Path | None = None
    progress: Callable[[str], None] = _silent
    most: int | None = None  # targets per population, for slices

    def measure(self, works: Iterable[W]) -> dict[W, Records]:
        """All records of each work, seed after seed; what was done before is read."""
        works = list(dict.fromkeys(works))
        tasks: list[Task] = [(work, seed) for work in works for seed in self.seeds]
        todo = [task for task in tasks if self._read(task) is None] if self.folder else tasks
        done: dict[Task, Records] = {}
        for number, (task, records) in enumerate(self._run(todo), 1):
            done[task] = records
            self.progress(f"{number} of {len(todo)}: {task[0].title}, seed {task[1]}")
        for task in tasks:
            if task not in done and (kept := self._read(task)) is not None:
                done[task] = kept
        return {work: np.concatenate([done[work, seed] for seed in self.seeds]) for work in works}

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

    def _run(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Records]]:
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

    def _group(self, tasks: Sequence[Task]) -> list[tuple[Task, Records]]:
        return [(task, self._task(task)) for task in tasks]

    def _task(self, task: Task) -> Records:
        work, seed = task
        records = work.records(_simulation(work.data, seed, work.trained_on, self._kept(work.data)), self.most)
        if (path := self._path(task)) is not None:
            fresh = path.with_suffix(f".{os.getpid()}.npy")
            np.save(fresh, records)
            fresh.replace(path)
        return records

    def _read(self, task: Task) -> Records | None:
        path = self._path(task)
        return None if path is None or not path.exists() else np.load(path, allow_pickle=False)

    def _path(self, task: Task) -> Path | None:
        kept = self._kept(task[0].data, type(task[0]))
        name = hashlib.sha256(repr((task, self.most)).encode()).hexdigest()[:20]
        return kept and kept / f"{task[1]}-{name}.npy"

    def _kept(self, data: str, maker: type = Simulation) -> Path | None:
        """The folder for this version of the data and of the code behind a class."""
        if self.folder is None:
            return None
        kept = self.folder / code_digest(maker) / f"{data}-{_digest(data)}"
        kept.mkdir(parents=True, exist_ok=True)
        return kept


@lru_cache(maxsize=16)
def _digest(data: str) -> str:
    return load(data).digest()


@lru_cache(maxsize=4)
def _simulation(name: str, seed: int, trained_on: TrainedOn, keep: Path | None) -> Simulation:
    return Simulation(name, seed, trained_on, keep)


def _simulation_key(task: Task) -> tuple[str, int, str]:
    return task[0].data, task[1], task[0].trained_on
