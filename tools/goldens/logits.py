"""logits/<case>/: a Hugging Face folder, tokens.npy (int64 [n]) and logits.npy (float32 [n, vocab]) of the model's forward pass.

Each case names the mistakes that it must expose. The maker plants every one of them and refuses to write a case whose logits do not
move by at least kDiscriminates: a golden that a wrong model passes is worth nothing.
"""

import copy
import json

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

from . import common

VOCAB = 64
TOKENS = 24
kDiscriminates = 2e-3  # ten times the bound on logits in tests/support/tolerances.h

MODELS = {"llama": (LlamaConfig, LlamaForCausalLM), "mistral": (MistralConfig, MistralForCausalLM),
          "gpt2": (GPT2Config, GPT2LMHeadModel)}


def llama(**fields):
    base = dict(vocab_size=VOCAB, hidden_size=36, intermediate_size=56, num_hidden_layers=2, num_attention_heads=6,
                num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
                bos_token_id=1, eos_token_id=2, pad_token_id=None)
    return base | fields


def gpt2(**fields):
    base = dict(vocab_size=VOCAB, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
    return base | fields


def near_the_tails_of_gelu(model):
    """The two GELUs differ most, beside their own size, about -2.6: move the inputs there and magnify what comes out."""
    for layer in model.transformer.h:
        layer.mlp.c_fc.weight.mul_(0.5)
        layer.mlp.c_fc.bias.sub_(2.4)
        layer.mlp.c_proj.weight.mul_(6.0)


# --- planted mistakes: each changes a loaded model, or gives config fields to change ---------------------------------------------

def zero_biases(part):
    def change(model):
        for key, value in model.named_parameters():
            if key.endswith(".bias") and part in key:
                value.zero_()
    return change


def unit_norms(model):
    for key, value in model.named_parameters():
        if value.dim() == 1 and key.endswith("weight"):
            value.fill_(1.0)


def heads_read_kv_round_robin(model):
    """Query head h reads KV head h mod G instead of h / (H / G)."""
    config = model.config
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    order = [h for g in range(groups) for h in range(heads) if h % groups == g]
    for layer in model.model.layers:
        q, o = layer.self_attn.q_proj.weight, layer.self_attn.o_proj.weight
        q.copy_(q.view(heads, -1, q.shape[1])[order].reshape(q.shape))
        o.copy_(o.view(o.shape[0], heads, -1)[:, order].reshape(o.shape))


def rope_of_neighbours(model):
    """RoPE turns elements 2i and 2i + 1 together instead of i and i + head_dim / 2."""
    head_dim = model.config.head_dim
    order = [*range(0, head_dim, 2), *range(1, head_dim, 2)]
    for layer in model.model.layers:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            for value in projection.parameters():
                value.copy_(value.view(-1, head_dim, *value.shape[1:])[:, order].reshape(value.shape))


def scale_of_hidden_over_heads(model):
    for layer in model.model.layers:
        layer.self_attn.scaling = (model.config.hidden_size / model.config.num_attention_heads) ** -0.5


def no_positions(model):
    model.transformer.wpe.weight.zero_()


def unscaled_attention(model):
    for layer in model.transformer.h:
        layer.attn.scaling = 1.0
        layer.attn.scale_attn_weights = False


COMMON = {"norm weights of 1": unit_norms}
LLAMA_COMMON = COMMON | {"rope of neighbours": rope_of_neighbours}
GPT2_COMMON = COMMON | {"no attention biases": zero_biases("attn"), "no ffn biases": zero_biases("mlp"),
                        "no norm biases": zero_biases("ln_"), "no positions": no_positions, "unscaled scores": unscaled_attention}

ADJUST = {"gpt2_exact_gelu": near_the_tails_of_gelu}

CASES = {
    "llama_gqa_head_dim": ("llama", llama(head_dim=10, hidden_size=48, intermediate_size=72),
                           LLAMA_COMMON | {"round-robin groups": heads_read_kv_round_robin,
                                     "scale of hidden/heads": scale_of_hidden_over_heads}),
    "llama_tied": ("llama", llama(tie_word_embeddings=True, num_hidden_layers=3, rms_norm_eps=1e-2),
                   LLAMA_COMMON | {"eps 1e-6": {"rms_norm_eps": 1e-6}}),
    "llama_biases": ("llama", llama(attention_bias=True, mlp_bias=True),
                     LLAMA_COMMON | {"no qkv biases": zero_biases("q_proj"), "no key biases": zero_biases("k_proj"),
                               "no value biases": zero_biases("v_proj"), "no output biases": zero_biases("o_proj"),
                               "no gate biases": zero_biases("gate_proj"), "no up biases": zero_biases("up_proj"),
                               "no down biases": zero_biases("down_proj")}),
    "llama_mha_odd_ffn": ("llama", llama(num_attention_heads=4, num_key_value_heads=4, hidden_size=40, intermediate_size=53), LLAMA_COMMON),
    "llama_mqa": ("llama", llama(num_attention_heads=4, num_key_value_heads=1, hidden_size=32), LLAMA_COMMON),
    "llama_theta_500000": ("llama", llama(num_attention_heads=4, hidden_size=32, rope_parameters={
        "rope_type": "default", "rope_theta": 500000.0}),
        LLAMA_COMMON | {"theta 10000": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}}),
    "mistral_window": ("mistral", llama(num_attention_heads=4, hidden_size=32, head_dim=8, sliding_window=7),
                       LLAMA_COMMON | {"no window": {"sliding_window": None}, "window 8": {"sliding_window": 8},
                                 "window 6": {"sliding_window": 6}}),
    "gpt2_tied": ("gpt2", gpt2(), GPT2_COMMON),
    "gpt2_exact_gelu": ("gpt2", gpt2(n_embd=36, n_head=3, n_inner=50, activation_function="gelu"),
                        GPT2_COMMON | {"tanh gelu": {"activation_function": "gelu_new"}}),
    "gpt2_three_layers": ("gpt2", gpt2(n_layer=3, n_head=2, layer_norm_epsilon=1e-2),
                          GPT2_COMMON | {"eps 1e-5": {"layer_norm_epsilon": 1e-5}}),
}

# The same model with its config as transformers 4 wrote it.
SPELLED_AS_4 = {"llama_theta_500000_spelled_as_4": "llama_theta_500000"}


def logits_of(model, tokens):
    with torch.no_grad():
        return model(torch.from_numpy(tokens)[None]).logits[0].numpy()


def build(kind, fields):
    config_class, model_class = MODELS[kind]
    config = config_class(**fields)
    config._attn_implementation = "eager"
    return model_class(config)


def effect(kind, fields, model, tokens, reference, mistake):
    """How far a planted mistake moves the logits."""
    if isinstance(mistake, dict):
        wrong = build(kind, fields | mistake)
        wrong.load_state_dict(model.state_dict())
        wrong.eval()
    else:
        wrong = copy.deepcopy(model)
        with torch.no_grad():
            mistake(wrong)
    return common.relative(logits_of(wrong, tokens), reference)


def make_case(name, folder, kind, fields, mistakes):
    model = build(kind, fields)
    common.fill(model, "logits/" + name, gain=1.4)
    if name in ADJUST:
        with torch.no_grad():
            ADJUST[name](model)
    tokens = common.random_state("tokens/" + name).randint(0, VOCAB, TOKENS).astype(np.int64)
    logits = logits_of(model, tokens)
    exact = logits_of(copy.deepcopy(model).double(), tokens)
    effects = {m: common.rounded(effect(kind, fields, model, tokens, logits, change)) for m, change in mistakes.items()}
    for mistake, size in effects.items():
        if size < kDiscriminates:
            raise SystemExit(f"error: logits/{name}: '{mistake}' moves the logits by only {size}")
    common.save_model(model, folder)
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "logits.npy", logits)
    return {"float32_from_float64": common.rounded(common.relative(logits, exact)), "moved_by": effects}


def respell(folder, source, model_class):
    """transformers 4: theta and scaling at the top level, torch_dtype for dtype."""
    folder.mkdir(parents=True)
    for file in ("model.safetensors", "tokens.npy", "logits.npy"):
        (folder / file).write_bytes((source / file).read_bytes())
    config = json.loads((source / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.0"
    common.write_json(folder / "config.json", dict(sorted(config.items())))
    model = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    if not np.array_equal(logits_of(model, np.load(folder / "tokens.npy")), np.load(folder / "logits.npy")):
        raise SystemExit(f"error: {folder.name}: transformers reads the 4.x spelling differently")


def generate(folder):
    report = {}
    for name, (kind, fields, mistakes) in CASES.items():
        report[name] = make_case(name, folder / name, kind, fields, mistakes)
    for name, source in SPELLED_AS_4.items():
        respell(folder / name, folder / source, MODELS[CASES[source][0]][1])
        report[name] = {"same_as": source}
    return report
