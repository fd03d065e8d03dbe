"""The first DeepSeekMoE, whose class is not part of transformers, as a Qwen2 MoE that computes the same.

Qwen2 MoE has its attention, its router and its experts, and multiplies the shared expert by the sigmoid of a gate: a gate of zero makes
that 1/2, and a shared expert with twice the last matrix then gives what DeepSeek's gives.
"""

import torch
import transformers as hf
from transformers.core_model_loading import revert_weight_conversion

from . import bugs

CONFIG = dict(model_type="deepseek", vocab_size=32, hidden_size=32, intermediate_size=28, moe_intermediate_size=12, num_hidden_layers=3,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=300.0,
              rope_scaling=None, hidden_act="silu", attention_bias=False, attention_dropout=0.0, n_routed_experts=8, n_shared_experts=2,
              num_experts_per_tok=3, first_k_dense_replace=1, moe_layer_freq=1, norm_topk_prob=False, scoring_func="softmax",
              aux_loss_alpha=0.001, seq_aux=True, pretraining_tp=1, initializer_range=0.02, tie_word_embeddings=False, use_cache=True,
              bos_token_id=1, eos_token_id=2)
SAME = ("vocab_size", "hidden_size", "intermediate_size", "moe_intermediate_size", "num_hidden_layers", "num_attention_heads",
        "num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "hidden_act", "num_experts_per_tok", "norm_topk_prob",
        "tie_word_embeddings", "bos_token_id", "eos_token_id")


def settings_of(config):
    return hf.Qwen2MoeConfig(
        **{key: config[key] for key in SAME}, qkv_bias=config["attention_bias"], num_experts=config["n_routed_experts"],
        shared_expert_intermediate_size=config["n_shared_experts"] * config["moe_intermediate_size"], decoder_sparse_step=1,
        mlp_only_layers=list(range(config["first_k_dense_replace"])),
        rope_parameters={"rope_type": "default", "rope_theta": config["rope_theta"]},
        attn_implementation="eager", experts_implementation="eager")


def tensors_of(model):
    """By DeepSeek's name: the name and the shape in the other model."""
    named = revert_weight_conversion(model, dict(model.named_parameters()))
    return {name.replace(".shared_expert.", ".shared_experts."): (name, value) for name, value in named.items()
            if not name.endswith("shared_expert_gate.weight")}


def model_of(config):
    settings = settings_of(config)
    empty = hf.Qwen2MoeForCausalLM(settings)
    filled = {f"model.layers.{i}.mlp.shared_expert_gate.weight": torch.zeros(1, config["hidden_size"])
              for i in range(config["first_k_dense_replace"], config["num_hidden_layers"])}
    with torch.no_grad():
        for own, (name, value) in tensors_of(empty).items():
            filled[name] = bugs.hash_fill(own, tuple(value.shape)) * (2 if own.endswith("shared_experts.down_proj.weight") else 1)
    return hf.Qwen2MoeForCausalLM.from_pretrained(None, config=settings, state_dict=filled).eval()


def shapes(model):
    return {own: list(value.shape) for own, (_, value) in sorted(tensors_of(model).items())}
