"""bugs/: right values for public bug reports on evaluation and training, on one tiny GPT-2 whose weights are a hash.

gpt2/ is the model. cases.json holds, for each case, its input, the right value and what the usual mistakes give:
  strided_perplexity   each token is scored once, and the mean is over tokens, not over windows (huggingface/transformers #34138);
  accumulation         the loss of two sequences of different lengths is the mean over their targets (huggingface/transformers #34191);
                       accumulation_grads.safetensors has the gradient of every parameter;
  schedule             the first update has a rate above zero (meta-pytorch/torchtune #2010);
  left_padding         logits of a sequence do not depend on padding before it (huggingface/transformers #3021).
The figures are asserted against those of the published analysis, so a slip in the maker is noticed.
"""

import math
import zlib

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from . import common

IGNORED = -100
PROMPT = [3, 7, 11, 15, 19, 23, 27, 31, 5, 9]


def hash_fill(name, shape):
    """Element i of the tensor `name`: a multiplicative hash of i and crc32(name), spread over [-0.5, 0.5); norm weights about 1."""
    mask = np.uint64(0xFFFFFFFF)
    x = (np.arange(math.prod(shape), dtype=np.uint64) * np.uint64(2654435761) + np.uint64(zlib.crc32(name.encode()))) & mask
    x ^= x >> np.uint64(16)
    x = (x * np.uint64(2246822519)) & mask
    x ^= x >> np.uint64(13)
    value = 0.5 * (2.0 * x.astype(np.float64) / 2**32 - 1.0)
    if len(shape) == 1 and name.endswith("weight"):
        value += 1.0
    return torch.from_numpy(value.astype(np.float32).reshape(shape))


def hashed_gpt2():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2,
                                       pad_token_id=0, attn_implementation="eager"))
    with torch.no_grad():
        for name, value in model.named_parameters():  # the tied head is listed once, by its saved name
            value.copy_(hash_fill(name, tuple(value.shape)))
    return model.eval()


def nlls(model, ids, first):
    """Negative log likelihoods of ids[first:], each given the ids before it; first >= 1."""
    with torch.no_grad():
        log_p = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
    return [-log_p[i - 1, ids[i]].item() for i in range(first, len(ids))]


def expect(what, got, right, digits):
    if abs(got - right) > 10.0**-digits:
        raise SystemExit(f"error: bugs: {what}: got {got}, published {right}")


def strided_perplexity(model):
    ids, window, stride = PROMPT + [4, 8], 6, 3
    windows, scored = [], 1
    for begin in range(0, len(ids), stride):
        end = min(begin + window, len(ids))
        windows.append({"begin": begin, "end": end, "first_scored": scored, "nll": nlls(model, ids[begin:end], scored - begin)})
        scored = end
        if end == len(ids):
            break
    every = [n for w in windows for n in w["nll"]]
    mean = sum(every) / len(every)
    window_means = [sum(w["nll"]) / len(w["nll"]) for w in windows]
    # New positions of each window: the first one counts its first token, which nothing predicts.
    lengths = [window] + [w["end"] - w["first_scored"] for w in windows[1:]]
    one = nlls(model, ids, 1)
    result = {
        "tokens": ids, "window": window, "stride": stride, "tokens_scored": len(every),
        "windows": [{k: w[k] for k in ("begin", "end", "first_scored")} for w in windows],
        "token_losses": every, "loss": mean, "perplexity": math.exp(mean),
        "one_window": {"loss": sum(one) / len(one), "perplexity": math.exp(sum(one) / len(one)), "token_losses": one},
        "wrong": {"perplexity_of_plain_mean_of_windows": math.exp(sum(window_means) / len(window_means)),
                  "perplexity_weighted_by_new_positions":
                      math.exp(sum(m * n for m, n in zip(window_means, lengths, strict=True)) / sum(lengths))},
    }
    expect("tokens scored", result["tokens_scored"], 11, 0)
    expect("strided loss", mean, 4.3604414, 6)
    expect("strided perplexity", result["perplexity"], 78.291688, 4)
    expect("plain mean of windows", result["wrong"]["perplexity_of_plain_mean_of_windows"], 79.035996, 4)
    expect("weights by new positions", result["wrong"]["perplexity_weighted_by_new_positions"], 78.014383, 4)
    expect("one window's loss", result["one_window"]["loss"], 4.4543247, 6)
    expect("one window's perplexity", result["one_window"]["perplexity"], 85.998059, 4)
    return result


def accumulation(model, folder):
    sequences = [PROMPT[:3], PROMPT[3:]]
    longest = max(map(len, sequences))
    inputs = torch.tensor([s + [0] * (longest - len(s)) for s in sequences])
    labels = torch.tensor([s[1:] + [IGNORED] * (longest - len(s) + 1) for s in sequences])
    mask = (torch.arange(longest)[None] < torch.tensor([[len(s)] for s in sequences])).long()

    def gradients(batches):
        """Loss and gradients of the sum over the batches' targets, over the number of all targets."""
        model.zero_grad()
        total = 0.0
        for ids, attention, targets in batches:
            logits = model(ids, attention_mask=attention).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")
            loss = loss / count
            loss.backward()
            total += loss.item()
        return total, {k: p.grad.clone() for k, p in model.named_parameters()}

    count = int((labels != IGNORED).sum())
    loss, grads = gradients([(inputs, mask, labels)])
    micro_loss, micro_grads = gradients([(inputs[i : i + 1], mask[i : i + 1], labels[i : i + 1]) for i in range(2)])
    apart = max(common.relative(micro_grads[k], grads[k]) for k in grads)
    means = [np.mean(nlls(model, s, 1)) for s in sequences]
    if apart > 1e-5 or abs(micro_loss - loss) > 1e-6:
        raise SystemExit(f"error: bugs: micro-batches differ from the padded batch by {apart}")
    expect("accumulated loss", loss, 4.0856509, 6)
    expect("mean of micro-batch means", float(np.mean(means)), 3.8086446, 6)
    common.save_tensors(folder / "accumulation_grads.safetensors", grads)
    return {"sequences": sequences, "targets": count, "loss": loss, "grad_norm": math.sqrt(sum(float((g.double() ** 2).sum())
            for g in grads.values())), "gradients": "accumulation_grads.safetensors",
            "wrong": {"mean_of_sequence_means": float(np.mean(means))}}


def schedule():
    peak, warm_up, total = 1.0, 4, 12

    def after_warm_up(step):
        return 0.5 * peak * (1 + math.cos(math.pi * (step - warm_up) / (total - warm_up)))

    rates = [peak * s / warm_up if s <= warm_up else after_warm_up(s) for s in range(1, total + 1)]
    one_late = [peak * s / warm_up if s < warm_up else after_warm_up(s) for s in range(total)]
    published = [0, 0.25, 0.5, 0.75, 1, 0.96194, 0.85355, 0.69134, 0.5, 0.30866, 0.14645, 0.03806]
    for got, right in zip(one_late, published, strict=True):
        expect("schedule one step late", got, right, 5)
    return {"peak": peak, "warmup_steps": warm_up, "total_steps": total, "floor": 0.0, "rates_of_steps_1_to_12": rates,
            "wrong": {"one_step_late": one_late}}


def left_padding(model):
    ids, pads = PROMPT[:5], 2
    with torch.no_grad():
        alone = model(torch.tensor([ids])).logits[0, -1]
        batch = torch.tensor([[0] * pads + ids, PROMPT[:7]])
        mask = torch.tensor([[0] * pads + [1] * 5, [1] * 7])
        padded = model(batch, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits[0, -1]
        shifted = model(batch, attention_mask=mask, position_ids=torch.arange(7)[None].expand(2, -1)).logits[0, -1]
    for got, right in zip(alone.tolist(), [1.96928, -0.8075, -1.81847, 0.08193, -0.02371, -0.10369], strict=False):
        expect("left padding", got, right, 4)
    expect("left padding, wrong", shifted[0].item(), 2.81043, 4)
    if common.relative(padded, alone) > 1e-5:
        raise SystemExit("error: bugs: left padding changes the logits")
    return {"tokens": ids, "pads_before": pads, "row_beside": PROMPT[:7], "last_logits": alone.tolist(),
            "wrong": {"last_logits_of_shifted_positions": shifted.tolist()}}


def generate(folder):
    model = hashed_gpt2()
    common.save_model(model, folder / "gpt2")
    cases = {"strided_perplexity": strided_perplexity(model), "accumulation": accumulation(model, folder), "schedule": schedule(),
             "left_padding": left_padding(model)}
    common.write_json(folder / "cases.json", cases)
    return {"model": "gpt2", "cases": list(cases), "parameters": sum(p.numel() for p in model.parameters())}
