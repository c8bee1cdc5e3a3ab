"""Reads and writes frozen GCNs as safetensors: plain tensors, never code."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from privcfs.errors import BackboneError
from privcfs.public.backbones.gcn import GCN

Tensors = Mapping[str, NDArray[np.float32]]


def load_backbone(path: str | Path) -> GCN:
    """A two-layer GCN from a safetensors file: ours (first, second) or the state dict of a PyTorch Geometric model."""
    path = Path(path)
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise BackboneError(f"backbone file {path} does not exist; check the path.") from None
    except (SafetensorError, OSError, ValueError, TypeError):
        raise BackboneError(
            f"backbone file {path.name} is not a complete safetensors file of float32 weights; export it again."
        ) from None
    return _from_tensors(tensors, path.name)


def save_backbone(backbone: GCN, path: str | Path, metadata: Mapping[str, str]) -> None:
    """Writes the weights under our own names."""
    names = ("first", "second", "first_bias", "second_bias")
    save_file({name: getattr(backbone, name) for name in names}, Path(path), dict(metadata))


def _from_tensors(tensors: Tensors, name: str) -> GCN:
    if {"first", "second"} <= set(tensors) <= {"first", "second", "first_bias", "second_bias"}:
        return GCN(**{key: _float32(value, name) for key, value in tensors.items()})
    layers = sorted(key.removesuffix(".lin.weight") for key in tensors if key.endswith(".lin.weight"))
    expected = {f"{layer}.{part}" for layer in layers for part in ("lin.weight", "bias")}
    if len(layers) != 2 or not set(tensors) <= expected:
        raise BackboneError(
            f"backbone file {name} holds {', '.join(sorted(tensors)[:6]) or 'nothing'}; expected first and second, "
            "or a two-layer PyTorch Geometric GCN (two .lin.weight and their .bias). "
            "For any other model use privcfs.TorchBackbone."
        )
    first, second = (
        {
            key.removeprefix(f"{layer}."): _float32(value, name)
            for key, value in tensors.items()
            if key.startswith(f"{layer}.")
        }
        for layer in layers
    )
    none = np.zeros(0, np.float32)
    return GCN(first["lin.weight"].T, second["lin.weight"].T, first.get("bias", none), second.get("bias", none))


def _float32(tensor: NDArray[np.float32], name: str) -> NDArray[np.float32]:
    if not np.issubdtype(tensor.dtype, np.floating):
        raise BackboneError(f"backbone file {name} holds {tensor.dtype} weights; export them as floating point.")
    return tensor.astype(np.float32)
