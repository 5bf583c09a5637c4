"""What an ONNX file says about itself, read from its bytes: no onnx package, no session.

Field numbers are those of ``onnx.proto`` (ModelProto, GraphProto, ValueInfoProto); the wire format is protobuf's.
The exporter's contract is stamped into the graph's own metadata, so that a contract that was changed afterwards is
found out even when every hash was made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from embodied_deploy.errors import PackageError
from embodied_deploy.package.codec import canonical
from embodied_deploy.package.contract import PolicyContract

_MODEL_GRAPH, _MODEL_OPSET, _MODEL_METADATA = 7, 8, 14
_MODEL_FUNCTIONS, _FUNCTION_NODE = 25, 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_ATTRIBUTE, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = 5, (5, 10), (6, 11)
_TENSOR_NAME, _TENSOR_PLACE = 8, 14
_DTYPES = {1: "float32", 2: "uint8", 7: "int64", 10: "float16", 11: "float64", 6: "int32", 9: "bool", 3: "int8"}
PREFIX = "embodied."
"""Keys of the metadata that this project writes; each ends with the reason word of its refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTensor:
    """An input or output: ``shape`` holds None where a size is dynamic; it is None as a whole when not declared."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInfo:
    """What stands in the head of an ONNX file.

    Attributes:
      opsets: domain to version; the default domain is ``""``.
      metadata: free key to value pairs of the exporter.
      inputs: in order, without initializers.
      outputs: in order.
      outside: names of weights that lie in other files, which no hash of the package covers.
    """

    opsets: Mapping[str, int]
    metadata: Mapping[str, str]
    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    outside: tuple[str, ...] = ()


def read_graph(data: bytes) -> GraphInfo:
    """Return the head of an ONNX file.

    Raises:
      PackageError: ``format``: the bytes are not a protobuf message of that kind.
    """
    try:
        return _info(memoryview(data))
    except (IndexError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackageError("format", f"policy.onnx: not readable as ONNX ({error}). Export it again.") from None


def stamps(contract: PolicyContract) -> dict[str, str]:
    """Return the metadata that ties a graph to its contract, one key per kind of mistake."""
    tensors = [*contract.inputs, *contract.outputs]
    chunk = contract.chunk
    order = [[t.name, t.role, t.source, [e.name for e in t.entries]] for t in tensors]
    parts = {
        "order": [order, {k: list(v) for k, v in contract.vocabulary.items()}],
        "unit": [[e.unit for e in t.entries] for t in tensors],
        "frame": [[e.frame for e in t.entries] for t in tensors],
        "range": [[[e.low, e.high] for e in t.entries] for t in tensors],
        "rate": [contract.rate_hz, None if chunk is None else [chunk.horizon, chunk.execute]],
        "robot": contract.robot,
    }
    return {PREFIX + key: canonical(value).decode() for key, value in parts.items()}


def stamp_graph(data: bytes, contract: PolicyContract) -> bytes:
    """Return the ONNX file with the stamps of ``contract`` in its metadata, in place of any that it had."""
    kept = bytearray()
    view = memoryview(data)
    for number, value, begin, end in _fields(view):
        if number == _MODEL_METADATA and _pair(value)[0].startswith(PREFIX):
            continue
        kept += view[begin:end]
    for key, text in sorted(stamps(contract).items()):
        entry = _bytes_field(1, key.encode()) + _bytes_field(2, text.encode())
        kept += _bytes_field(_MODEL_METADATA, entry)
    return bytes(kept)


def _info(data: memoryview) -> GraphInfo:
    opsets: dict[str, int] = {}
    metadata: dict[str, str] = {}
    graph: memoryview | None = None
    outside: list[str] = []
    for number, value, _, _ in _fields(data):
        if number == _MODEL_GRAPH:
            graph = value
        elif number == _MODEL_FUNCTIONS:
            outside += [w for n, v, _, _ in _fields(value) if n == _FUNCTION_NODE for w in _outside_node(v)]
        elif number == _MODEL_METADATA:
            key, text = _pair(value)
            metadata[key] = text
        elif number == _MODEL_OPSET:
            parts = {n: v for n, v, _, _ in _fields(value)}
            opsets[bytes(parts.get(1, b"")).decode()] = int(parts.get(2, 0))
    if graph is None:
        raise ValueError("no graph in it")
    inner = [(n, v) for n, v, _, _ in _fields(graph)]
    weights = {_text(v, _TENSOR_NAME) for n, v in inner if n == _GRAPH_INITIALIZER}
    inputs = [_tensor(v) for n, v in inner if n == _GRAPH_INPUT]
    return GraphInfo(
        opsets=opsets,
        metadata=metadata,
        inputs=tuple(t for t in inputs if t.name not in weights),
        outputs=tuple(_tensor(v) for n, v in inner if n == _GRAPH_OUTPUT),
        outside=(*outside, *_outside_graph(graph)),
    )


def _outside_graph(data: memoryview) -> Iterator[str]:
    """Yield the names of tensors whose values lie in another file, in subgraphs too."""
    for number, value, _, _ in _fields(data):
        if number == _GRAPH_INITIALIZER:
            yield from _outside_tensor(value)
        elif number == _GRAPH_NODE:
            yield from _outside_node(value)


def _outside_node(data: memoryview) -> Iterator[str]:
    for attribute in (v for n, v, _, _ in _fields(data) if n == _NODE_ATTRIBUTE):
        for number, value, _, _ in _fields(attribute):
            if number in _ATTRIBUTE_TENSORS:
                yield from _outside_tensor(value)
            elif number in _ATTRIBUTE_GRAPHS:
                yield from _outside_graph(value)


def _outside_tensor(data: memoryview) -> Iterator[str]:
    if any(n == _TENSOR_PLACE and v for n, v, _, _ in _fields(data)):
        yield _text(data, _TENSOR_NAME) or "a constant"


def _tensor(data: memoryview) -> GraphTensor:
    parts = {n: v for n, v, _, _ in _fields(data)}
    kind = {n: v for n, v, _, _ in _fields(parts[2])}[1]
    spec = {n: v for n, v, _, _ in _fields(kind)}
    shape = None
    if 2 in spec:
        sizes = [{n: v for n, v, _, _ in _fields(d)}.get(1) for _, d, _, _ in _fields(spec[2])]
        shape = tuple(sizes)
    return GraphTensor(name=bytes(parts[1]).decode(), dtype=_DTYPES.get(spec[1], f"type {spec[1]}"), shape=shape)


def _pair(data: memoryview) -> tuple[str, str]:
    return _text(data, 1), _text(data, 2)


def _text(data: memoryview, number: int) -> str:
    return next((bytes(v).decode() for n, v, _, _ in _fields(data) if n == number), "")


def _fields(data: memoryview) -> Iterator[tuple[int, Any, int, int]]:
    """Yield number, value (int or bytes), begin and end of each field of a message."""
    at = 0
    while at < len(data):
        begin = at
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {wire}")
        if at > len(data) or number == 0:
            raise ValueError("a field runs past the end")
        yield number, value, begin, at


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _bytes_field(number: int, value: bytes) -> bytes:
    return _encode(number << 3 | 2) + _encode(len(value)) + value


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
