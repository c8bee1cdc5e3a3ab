"""Reads and writes frozen GCNs as safetensors: plain tensors, never code."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from privcfs.errors import ModelError
from privcfs.public.models.gcn import GCN
from privcfs.tables.parsing import refuse_unreadable, shown

Tensors = Mapping[str, NDArray[np.float32]]
# Types that NumPy can hold. The format has further ones, of 4, 6 and 8 bits and bfloat16.
FLOATS = ("F16", "F32", "F64")


def load_model(path: str | Path) -> GCN:
    """Reads a frozen two-layer GCN from a safetensors file, which holds plain tensors and never code.

    Args:
        path: The file: one that `save_model` wrote, or the state dict of a PyTorch Geometric GCN with two layers.

    Returns:
        The model.

    Raises:
        ModelError: The file is missing, incomplete, or holds another architecture.
    """
    path = Path(path)
    refuse_unreadable(path, "model", ModelError)
    try:
        with safe_open(path, "np") as file:
            types = {name: str(file.get_slice(name).get_dtype()) for name in file.keys()}  # noqa: SIM118
            tensors = {name: file.get_tensor(name) for name in types if types[name] in FLOATS}
    except (SafetensorError, OSError, ValueError, TypeError):
        raise ModelError(
            f"model file {path.name} is not a complete safetensors file of float32 weights; export it again."
        ) from None
    layers = _layers(types, path.name)
    for name in sorted(types.keys() - tensors.keys()):
        raise ModelError(
            f"model file {path.name} holds {types[name]} weights in {shown(name)}; export them as float32."
        )
    return _from_tensors(tensors, layers)


def save_model(model: GCN, path: str | Path, metadata: Mapping[str, str]) -> None:
    """Writes a frozen two-layer GCN as a safetensors file.

    Args:
        model: The model.
        path: Where the file goes; an existing file is overwritten.
        metadata: Texts that are kept beside the weights, such as what the model was trained on.

    Raises:
        ModelError: The file cannot be written.
    """
    names = ("first", "second", "first_bias", "second_bias")
    content = save({name: getattr(model, name) for name in names}, dict(metadata))
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise ModelError(f"model file {path} cannot be written: {error.strerror}.") from None


def _layers(names: Collection[str], file: str) -> tuple[str, ...]:
    """The two layers of a PyTorch Geometric model; none where the names are our own."""
    if {"first", "second"} <= set(names) <= {"first", "second", "first_bias", "second_bias"}:
        return ()
    layers = tuple(sorted(name.removesuffix(".lin.weight") for name in names if name.endswith(".lin.weight")))
    expected = {f"{layer}.{part}" for layer in layers for part in ("lin.weight", "bias")}
    if len(layers) != 2 or not set(names) <= expected:
        held = ", ".join(map(shown, sorted(names)[:6])) or "nothing"
        raise ModelError(
            f"model file {file} holds {held}; expected first and second, or a two-layer PyTorch Geometric GCN "
            "(two .lin.weight and their .bias). For any other model use privcfs.TorchModel."
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
