"""Reads and writes frozen GCNs as safetensors: plain tensors, never code."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from privcfs.errors import BackboneError
from privcfs.public.backbones.gcn import GCN
from privcfs.tables.parsing import refuse_unreadable, shown

Tensors = Mapping[str, NDArray[np.float32]]
FLOATS = ("F16", "F32", "F64")  # what NumPy can hold; safetensors also knows types of 4, 6 and 8 bits, and bfloat16


def load_backbone(path: str | Path) -> GCN:
    """A two-layer GCN from a safetensors file: ours (first, second) or the state dict of a PyTorch Geometric model."""
    path = Path(path)
    refuse_unreadable(path, "backbone", BackboneError)
    try:
        with safe_open(path, "np") as file:
            types = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
            tensors = {name: file.get_tensor(name) for name in types if types[name] in FLOATS}
    except (SafetensorError, OSError, ValueError, TypeError):
        raise BackboneError(
            f"backbone file {path.name} is not a complete safetensors file of float32 weights; export it again."
        ) from None
    layers = _layers(types, path.name)
    for name in sorted(types.keys() - tensors.keys()):
        raise BackboneError(
            f"backbone file {path.name} holds {types[name]} weights in {shown(name)}; export them as float32."
        )
    return _from_tensors(tensors, layers)


def save_backbone(backbone: GCN, path: str | Path, metadata: Mapping[str, str]) -> None:
    """Writes the weights under our own names."""
    names = ("first", "second", "first_bias", "second_bias")
    content = save({name: getattr(backbone, name) for name in names}, dict(metadata))
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise BackboneError(f"backbone file {path} cannot be written: {error.strerror}.") from None


def _layers(names: Collection[str], file: str) -> tuple[str, ...]:
    """The two layers of a PyTorch Geometric model; none where the names are our own."""
    if {"first", "second"} <= set(names) <= {"first", "second", "first_bias", "second_bias"}:
        return ()
    layers = tuple(sorted(name.removesuffix(".lin.weight") for name in names if name.endswith(".lin.weight")))
    expected = {f"{layer}.{part}" for layer in layers for part in ("lin.weight", "bias")}
    if len(layers) != 2 or not set(names) <= expected:
        held = ", ".join(map(shown, sorted(names)[:6])) or "nothing"
        raise BackboneError(
            f"backbone file {file} holds {held}; expected first and second, or a two-layer PyTorch Geometric GCN "
            "(two .lin.weight and their .bias). For any other model use privcfs.TorchBackbone."
        )
    return layers


def _from_tensors(tensors: Tensors, layers: tuple[str, ...]) -> GCN:
    weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items()}
    if not layers:
        return GCN(**weights)
    first, second = (weights[f"{layer}.lin.weight"].T for layer in layers)
    none = np.zeros(0, np.float32)
    first_bias, second_bias = (weights.get(f"{layer}.bias", none) for layer in layers)
    return GCN(first, second, first_bias, second_bias)
