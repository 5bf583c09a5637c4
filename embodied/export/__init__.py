"""From a checkpoint to a policy package: ONNX, quantization, parity, plain C."""
