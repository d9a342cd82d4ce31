"""Fracast-0 as a file for `train.foundation_model`, from its package on PyPI; writes FILE.onnx, compares both answers.

    python -m venv VENV; VENV/bin/pip install fracast onnx onnxruntime
    VENV/bin/python benchmarks/fracast_onnx.py FILE.onnx

torch.onnx knows no FFT of a fixed length and no RMSNorm, so both are written out; the weights stay as they are.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np


def periods(
    x: Any, *, min_period: int, max_period: int, top_k: int, significance_alpha: float
) -> tuple[Any, Any, None]:
    """`fracast._core.periodic.official_periodogram.significant_periods`, its FFT as products with sines and cosines."""
    import torch

    n_fft = 1 << math.ceil(math.log2(x.shape[1]))
    n_bins = n_fft // 2
    steps = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * torch.arange(1, n_bins + 1, dtype=torch.float64)
    angle = 2 * math.pi * torch.remainder(steps, n_fft) / n_fft
    centred = x - x.mean(dim=1, keepdim=True)
    power = (centred @ torch.cos(angle).float()) ** 2 + (centred @ torch.sin(angle).float()) ** 2
    share = power / power.sum(dim=1, keepdim=True).clamp(min=1e-12)
    higher = (share[:, 1:-1] > share[:, :-2]) & (share[:, 1:-1] > share[:, 2:])
    edge = torch.zeros_like(higher[:, :1])
    allowed = torch.zeros(n_bins, dtype=torch.bool)
    allowed[max(0, n_fft // max_period - 1) : n_fft // max(2, min_period)] = True
    significant = share >= math.log(n_bins / significance_alpha) / n_bins
    peak = torch.cat([edge, higher, edge], dim=1) & allowed & significant
    scores, at = torch.where(peak, share, torch.full_like(share, -1.0)).topk(k=top_k, dim=1)
    found = torch.round(n_fft / (at + 1).float())
    return torch.where(scores > 0, found, torch.zeros_like(found)).long(), scores, None


def filled_with_mean(values: Any, mask: Any) -> Any:
    """`fracast._core.periodic.encoder._fill_nan_row` for values that are finite where the mask is true."""
    import torch

    known = torch.where(mask, values, torch.zeros_like(values))
    mean = known.sum(dim=1, keepdim=True) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.where(mask, values, mean)


def main(file: Path) -> None:
    """Export, then ask both for series with gaps."""
    import onnx
    import onnxruntime
    import torch
    from fracast._core.periodic import encoder, seasonal_fill
    from fracast.inference import FracastModel

    model = FracastModel.from_pretrained(weights="fp32")

    class Exported(torch.nn.Module):
        """context (n_series, 2048), NaN = missing, to quantiles (n_series, 9, 48)."""

        def __init__(self) -> None:
            super().__init__()
            self.core, self.head = model.core, model.head

        def forward(self, context: Any) -> Any:
            mask = ~torch.isnan(context)
            far = torch.full_like(context, 1e30)
            low = torch.where(mask, context, far).amin(1, keepdim=True)
            span = (torch.where(mask, context, -far).amax(1, keepdim=True) - low).clamp(min=1e-5)
            values = torch.where(mask, (context - low) / span, torch.zeros_like(context))
            hidden = self.core(values[:, None], mask[:, None], mask[:, None].float())
            answer = self.head.forward_horizon(hidden, last_obs=values[:, -1:], ctx=values, ctx_mask=mask)
            return (answer * span[:, :, None] + low[:, :, None]).transpose(1, 2)

    rng = np.random.default_rng(0)
    context = 1 + 0.5 * np.sin(2 * np.pi * np.arange(2048) / 48) + rng.normal(0, 0.2, (5, 2048))
    context[0, 100:300] = context[1, :1500] = np.nan
    context = context.astype(np.float32)
    answer = np.swapaxes(model.forecast_batch(context), 1, 2)
    encoder.significant_periods = seasonal_fill.significant_periods = periods
    encoder._fill_nan_row = seasonal_fill._fill_nan_row = filled_with_mean
    eps = torch.finfo(torch.float32).eps
    torch.nn.RMSNorm.forward = lambda norm, x: (
        x * torch.rsqrt((x * x).mean(-1, keepdim=True) + (norm.eps or eps)) * norm.weight
    )
    axes = {name: {0: "n_series"} for name in ("context", "quantiles")}
    torch.onnx.export(
        Exported().eval(),
        (torch.from_numpy(context),),
        str(file),
        input_names=["context"],
        output_names=["quantiles"],
        dynamic_axes=axes,
        opset_version=18,
        dynamo=False,
    )
    exported = onnx.load(file)
    onnx.helper.set_model_props(exported, {"quantile_levels": ",".join(f"{level:g}" for level in model.quantiles)})
    onnx.save(exported, file)
    asked = onnxruntime.InferenceSession(str(file)).run(None, {"context": context})[0]
    print(f"{file}: answers differ from the package's by {np.abs(asked - answer).max():.1e} at most")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
