"""What the golden makers share: weights from a frozen generator, Hugging Face folders, measures of difference."""

import json
import zlib

import numpy as np
import torch
from safetensors.torch import save_file
from transformers.utils import logging

logging.disable_progress_bar()


def random_state(name):
    """A generator of its own for each name, so that adding a case leaves the others as they are."""
    return np.random.RandomState(zlib.crc32(name.encode()))


def fill(model, name, gain):
    """Random weights large enough for every mechanism to show in the result.

    Matrices get standard deviation gain / sqrt(inputs), so attention is far from uniform and activations leave the linear range;
    norm weights are spread about 1 and biases about 0, so that dropping either is seen.
    """
    rng = random_state(name)
    with torch.no_grad():
        for key, value in sorted(model.named_parameters()):
            shape = tuple(value.shape)
            noise = rng.standard_normal(shape)
            if key.endswith("bias"):
                noise = 0.4 * noise
            elif value.dim() == 1:
                noise = 1.0 + 0.3 * noise
            elif "embed" in key or "wte" in key or "wpe" in key:
                noise = 0.7 * noise
            else:
                # nn.Linear stores [outputs, inputs]; GPT-2's Conv1D stores [inputs, outputs].
                inputs = shape[0] if ".c_" in key else shape[1]
                noise = gain / np.sqrt(inputs) * noise
            value.copy_(torch.from_numpy(noise.astype(np.float32)))
    model.eval()


def save_model(model, folder):
    """The folder as save_pretrained writes it, less the generation defaults, which no test reads."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)


def save_tensors(path, tensors):
    save_file({k: v.detach().clone().contiguous() for k, v in sorted(tensors.items())}, path, metadata={"format": "pt"})


def write_json(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def relative(a, b):
    """The measure that tests/support/compare.h bounds: the largest |a - b| / (|b| + root mean square of b)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float((np.abs(a - b) / (np.abs(b) + np.sqrt(np.mean(b * b)))).max())


def rounded(x, digits=3):
    """For figures that are printed for the reader and compared with nothing."""
    return float(f"{x:.{digits - 1}e}")
