"""An optional predictor: a pretrained model from a local ONNX file (docs/extend/foundation-models.md)."""
