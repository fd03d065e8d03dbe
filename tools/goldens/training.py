"""train/<case>/: twenty AdamW steps of a tiny model.

init/ and final/ are Hugging Face folders; tokens.npy is int64 [steps, batch, length + 1] (inputs are [..., :-1], targets [..., 1:]);
losses.npy and grad_norms.npy are float64 [steps]: the mean loss of the step's batch before its update, and the global norm of the
gradients before clipping. hyper.json holds everything else. The float32 run is the golden; a float64 run of the same loop tells how
much of the tolerance rounding uses up. As in logits.py, planted mistakes must be seen.

eps is larger than usual: the gradient of GPT-2's key bias is zero but for rounding (softmax ignores what is added to all scores of a
row), and AdamW with a small eps would blow that rounding up to whole steps of the learning rate.
"""

import copy
import math

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from . import common

VOCAB, BATCH, LENGTH, STEPS = 64, 4, 16, 20
PEAK, WARM_UP, FLOOR = 1e-2, 4, 0.1
BETA1, BETA2, WEIGHT_DECAY, CLIP = 0.9, 0.95, 0.1, 1.0
kRounding = 3e-5  # float32 against float64; a third of the bound that the tests use
kDiscriminates = 1e-3  # ten times that bound


def llama():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=32, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, pad_token_id=None,
        attn_implementation="eager"))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCAB, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
        embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, attn_implementation="eager"))


CASES = {"llama_gqa_tied": (llama, 1e-6), "gpt2": (gpt2, 1e-5)}


def learning_rate(step):
    """Of step 1 .. STEPS: linear to the peak at step WARM_UP, then a cosine that ends on FLOOR * PEAK at the last step."""
    if step <= WARM_UP:
        return PEAK * step / WARM_UP
    done = (step - WARM_UP) / (STEPS - WARM_UP)
    return PEAK * (FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done)))


def sequences(name):
    """A noisy affine walk over the vocabulary, so that there is something to learn."""
    rng = common.random_state("sequences/" + name)
    tokens = np.empty((STEPS, BATCH, LENGTH + 1), np.int64)
    tokens[..., 0] = rng.randint(0, VOCAB, (STEPS, BATCH))
    for t in range(LENGTH):
        noise = np.where(rng.random_sample((STEPS, BATCH)) < 0.2, rng.randint(0, VOCAB, (STEPS, BATCH)), 0)
        tokens[..., t + 1] = (5 * tokens[..., t] + 3 + noise) % VOCAB
    return tokens


def train(model, tokens, rates, eps, beta1=BETA1, beta2=BETA2, decay=WEIGHT_DECAY, decay_vectors=0.0, clip=CLIP):
    model.train()
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": decay}, {"params": others, "weight_decay": decay_vectors}],
                                  lr=PEAK, betas=(beta1, beta2), eps=eps, foreach=False, fused=False)
    losses, norms = [], []
    for batch, rate in zip(torch.from_numpy(tokens), rates, strict=True):
        logits = model(batch[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip, foreach=False).item())
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), np.array(norms)


def distance(model, other):
    """The largest difference over all parameters, each measured against its own scale."""
    theirs = dict(other.named_parameters())
    return max(common.relative(v.detach(), theirs[k].detach()) for k, v in model.named_parameters())


def planted_mistakes(initial, final, tokens, rates, eps):
    late = [0.0] + rates[:-1]
    runs = {"rates one step late": (late, {}), "norms and biases decayed": (rates, {"decay_vectors": WEIGHT_DECAY}),
            "no decay": (rates, {"decay": 0.0}), "no clipping": (rates, {"clip": math.inf}), "beta2 0.999": (rates, {"beta2": 0.999}),
            "ten times eps": (rates, {"eps": 10 * eps})}
    effects = {}
    for mistake, (wrong_rates, fields) in runs.items():
        model = copy.deepcopy(initial)
        train(model, tokens, wrong_rates, **({"eps": eps} | fields))
        effects[mistake] = common.rounded(distance(model, final))
        if effects[mistake] < kDiscriminates:
            raise SystemExit(f"error: train: '{mistake}' moves the weights by only {effects[mistake]}")
    return effects


def make_case(name, folder, make, eps):
    model = make()
    common.fill(model, "train/" + name, gain=1.0)
    common.save_model(model, folder / "init")
    initial = copy.deepcopy(model)
    double = copy.deepcopy(model).double()
    tokens, rates = sequences(name), [learning_rate(s) for s in range(1, STEPS + 1)]
    losses, norms = train(model, tokens, rates, eps)
    losses64, norms64 = train(double, tokens, rates, eps)

    rounding = {
        "losses": float(np.max(np.abs(losses - losses64) / losses64)),
        "grad_norms": float(np.max(np.abs(norms - norms64) / norms64)),
        "weights": distance(model, double),
    }
    if max(rounding.values()) > kRounding:
        raise SystemExit(f"error: train/{name}: float32 and float64 differ by {rounding}")
    start = dict(initial.named_parameters())
    moved = min(common.relative(v.detach(), start[k].detach()) for k, v in model.named_parameters())

    common.save_model(model, folder / "final")
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "losses.npy", losses)
    np.save(folder / "grad_norms.npy", norms)
    common.write_json(folder / "hyper.json", {
        "steps": STEPS, "batch": BATCH, "length": LENGTH, "learning_rates": rates,
        "optimizer": "adamw", "beta1": BETA1, "beta2": BETA2, "eps": eps,
        "weight_decay": WEIGHT_DECAY, "weight_decay_on": "parameters of two or more dimensions, embeddings included",
        "clip_grad_norm": CLIP, "clip_rule": "gradients times min(1, clip / (norm + 1e-6))",
        "loss": "mean over the batch's batch * length targets",
        "schedule": {"peak": PEAK, "warmup_steps": WARM_UP, "total_steps": STEPS, "kind": "cosine", "floor": FLOOR * PEAK},
        "float32_from_float64": {k: common.rounded(v) for k, v in rounding.items()},
    })
    return {"float32_from_float64": {k: common.rounded(v) for k, v in rounding.items()},
            "every_parameter_moved_by_at_least": common.rounded(moved),
            "moved_by": planted_mistakes(initial, model, tokens, rates, eps),
            "steps_clipped": int(np.sum(norms > CLIP)),
            "first_and_last_loss": [common.rounded(losses[0], 5), common.rounded(losses[-1], 5)]}


def generate(folder):
    return {name: make_case(name, folder / name, make, eps) for name, (make, eps) in CASES.items()}
