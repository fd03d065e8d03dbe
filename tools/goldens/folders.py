"""folders/cases.json: what save_pretrained writes for tiny models of every family with odd settings, and what they compute.

A case holds the folder's config.json, the names and shapes of its tensors (their values are those of bugs.hash_fill, so none is stored),
the tokens, the logits of the last position (of the first one where the model is an encoder, whose hidden states are taken where it has no
head), and by the mistake's name what a planted mistake gives: a config of which one field is another, which the maker refuses to write
when it moves the result by less than kDiscriminates.
"""

import json
import struct
import tempfile
from pathlib import Path

import torch

from . import bugs, common, deepseek_moe, published
from .published import BASE, ENCODER, EXPERTS, FINE, GEMMA, GLM4_MOE, LONGER, PROMPT, Case, rope

kDiscriminates = published.kDiscriminates

HEADLESS = {"bert_base", "roberta_base"}
ENCODERS = {"bert", "roberta"} | HEADLESS
# Six heads of 6 on a width of 24, and one KV head.
ODD = BASE | dict(hidden_size=24, num_attention_heads=6, num_key_value_heads=1, head_dim=6)
FALCON = dict(vocab_size=32, hidden_size=24, num_hidden_layers=2, num_attention_heads=6, ffn_hidden_size=40, max_position_embeddings=64,
              bos_token_id=1, eos_token_id=2, tie_word_embeddings=True)
NEOX = published.CASES["gpt_neox"].config
BART = published.CASES["bart"].config
FACTORS = [1.0, 1.25, 1.5]
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)


def wrong(**changes):
    """By name: the config fields of a planted mistake."""
    return {name: (fields, []) for name, fields in changes.items()}


CASES = published.CASES | {
    "llama_odd": Case("llama", ODD | dict(attention_bias=True, mlp_bias=True), [],
                      wrong=wrong(eps=dict(rms_norm_eps=1e-2), theta=rope("default", theta=500.0))),
    "llama3": Case("llama", BASE | rope("llama3", **LLAMA3), [-0.67124, -1.83311, 0.12167, 2.06038, 0.87021, 0.1081],
                   wrong=wrong(none=rope("default"), factor=rope("llama3", **LLAMA3 | {"factor": 4.0}))),
    "llama_theta": Case("llama", BASE | rope("default", theta=100.0), [-1.09942, -1.11351, 0.5108, 2.19435, 1.32556, 0.00144],
                        wrong=wrong(theta=rope("default"))),
    "llama_linear": Case("llama", BASE | rope("linear", factor=4.0), [], wrong=wrong(none=rope("default"))),
    "mistral_odd": Case("mistral", ODD | dict(sliding_window=3), [], wrong=wrong(none=dict(sliding_window=None))),
    "mixtral_window": Case("mixtral", EXPERTS | dict(num_local_experts=5, sliding_window=5, head_dim=10), [], tokens=LONGER,
                           wrong=wrong(none=dict(sliding_window=None))),
    "qwen2": Case("qwen2", {k: v for k, v in ODD.items() if k != "head_dim"} | dict(tie_word_embeddings=True), [],
                  wrong=wrong(theta=rope("default", theta=300.0))),
    "qwen2_window": Case("qwen2", BASE | dict(use_sliding_window=True, sliding_window=4, max_window_layers=1), [],
                         wrong=wrong(none=dict(use_sliding_window=False), all=dict(max_window_layers=0))),
    "qwen3_biased": Case("qwen3", ODD | dict(attention_bias=True), [], wrong=wrong(eps=dict(rms_norm_eps=1e-2))),
    "qwen3_moe_dense": Case("qwen3_moe", FINE | dict(decoder_sparse_step=2, attention_bias=True, head_dim=10), [], tokens=LONGER,
                            wrong=wrong(all=dict(mlp_only_layers=[1]))),
    "gemma2_odd": Case("gemma2", GEMMA | dict(head_dim=6, query_pre_attn_scalar=9, attn_logit_softcapping=2.0, num_hidden_layers=3), [],
                       wrong=wrong(scale=dict(query_pre_attn_scalar=6), window=dict(sliding_window=5))),
    "gemma3_six_layers": Case(
        "gemma3_text", GEMMA | dict(head_dim=6, query_pre_attn_scalar=24, num_hidden_layers=7, num_key_value_heads=1), [],
        wrong=wrong(window=dict(sliding_window=5), scale=dict(query_pre_attn_scalar=6))),
    "cohere_plain": Case("cohere", BASE | dict(attention_bias=True, tie_word_embeddings=True, logit_scale=0.25), [],
                         wrong=wrong(scale=dict(logit_scale=0.5), norm=dict(layer_norm_eps=1e-2))),
    "cohere2": Case("cohere2", BASE | dict(tie_word_embeddings=True, num_hidden_layers=5, sliding_window=4, head_dim=6), [],
                    wrong=wrong(window=dict(sliding_window=5), full=dict(layer_types=["sliding_attention"] * 5))),
    "olmo": Case("olmo", BASE, [], wrong=wrong(theta=rope("default", theta=300.0))),
    "olmo2_odd": Case("olmo2", ODD | dict(attention_bias=True), [], wrong=wrong(eps=dict(rms_norm_eps=1e-2))),
    "phi": Case("phi", BASE | dict(hidden_size=32, num_key_value_heads=4), [],
                wrong=wrong(rotated=rope("default", partial_rotary_factor=1.0), act=dict(hidden_act="relu"))),
    "phi3": Case("phi3", BASE | dict(hidden_size=24, num_attention_heads=6, num_key_value_heads=3, sliding_window=4), [],
                 wrong=wrong(window=dict(sliding_window=5))),
    "phi3_longrope_beyond": Case(
        "phi3", BASE | dict(hidden_size=24, max_position_embeddings=64, original_max_position_embeddings=8)
        | rope("longrope", short_factor=FACTORS, long_factor=[2.0, 3.0, 5.0], original_max_position_embeddings=8), [],
        wrong=wrong(short=rope("longrope", short_factor=FACTORS, long_factor=FACTORS, original_max_position_embeddings=8))),
    "phi3_longrope_within": Case(
        "phi3", BASE | dict(hidden_size=24, max_position_embeddings=64, original_max_position_embeddings=32)
        | rope("longrope", short_factor=FACTORS, long_factor=[2.0, 3.0, 5.0], original_max_position_embeddings=32), [],
        wrong=wrong(none=rope("default"))),
    "gpt2_odd": Case("gpt2", dict(vocab_size=32, n_positions=16, n_embd=24, n_layer=2, n_head=3, n_inner=20, activation_function="relu",
                                  layer_norm_epsilon=1e-3, bos_token_id=1, eos_token_id=2),
                     [], wrong=wrong(eps=dict(layer_norm_epsilon=1e-1), act=dict(activation_function="gelu_new"))),
    "gpt_neox_sequential": Case("gpt_neox", NEOX | dict(use_parallel_residual=False, attention_bias=False), [],
                                wrong=wrong(parallel=dict(use_parallel_residual=True))),
    "falcon_mqa": Case("falcon", FALCON | dict(multi_query=True, parallel_attn=True), [], wrong=wrong(eps=dict(layer_norm_epsilon=1e-2))),
    "falcon_mha": Case("falcon", FALCON | dict(multi_query=False, parallel_attn=False, bias=True), [],
                       wrong=wrong(theta=rope("default", theta=300.0))),
    "falcon_gqa": Case("falcon", FALCON | dict(new_decoder_architecture=True, num_kv_heads=2), [],
                       wrong=wrong(theta=rope("default", theta=300.0))),
    "falcon_gqa_one_norm": Case("falcon", FALCON | dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1), [],
                                wrong=wrong(theta=rope("default", theta=300.0))),
    "bert_base": Case("bert_base", ENCODER, [0.84842, 0.09606, -1.96155, -0.62863, -1.59005, -1.25762], tokens=PROMPT[:5], wrong=wrong(act=dict(hidden_act="relu"))),
    "bert_odd": Case("bert", ENCODER | dict(hidden_size=24, num_attention_heads=3, hidden_act="gelu_new", type_vocab_size=3), [],
                     tokens=PROMPT[:5], wrong=wrong(act=dict(hidden_act="relu"))),
    "roberta_base": Case("roberta_base", ENCODER | dict(max_position_embeddings=20, type_vocab_size=1, pad_token_id=1),
                         [-0.8445, 1.04417, -2.18878, -0.46433, -1.24728, -1.09001], tokens=[0, 7, 11, 15, 2],
                         wrong=wrong(eps=dict(layer_norm_eps=1e-2))),
    "roberta": Case("roberta", ENCODER | dict(max_position_embeddings=20, type_vocab_size=1, pad_token_id=1), [], tokens=[0, 7, 11, 15, 2],
                    wrong=wrong(eps=dict(layer_norm_eps=1e-2))),
    "t5_silu": Case("t5", published.CASES["t5"].config | dict(d_kv=6, num_heads=3, num_decoder_layers=3, feed_forward_proj="gated-silu"), [],
                    tokens=[3, 7, 11, 15, 19, 1], decoder_tokens=[0, 5, 9, 13], wrong=wrong(eps=dict(layer_norm_epsilon=1e-2))),
    "bart_odd": Case("bart", BART | dict(encoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=20, scale_embedding=True), [],
                     tokens=[0, 7, 11, 15, 19, 2], decoder_tokens=[2, 0, 5, 9, 13], wrong=wrong(scale=dict(scale_embedding=False))),
    "marian": Case("marian", dict(vocab_size=32, decoder_vocab_size=32, d_model=16, encoder_layers=2, decoder_layers=2,
                                  encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=24,
                                  max_position_embeddings=64, activation_function="swish", scale_embedding=True, pad_token_id=31,
                                  eos_token_id=0, decoder_start_token_id=31), [],
                   tokens=[3, 7, 11, 15, 19, 0], decoder_tokens=[31, 5, 9, 13], wrong=wrong(scale=dict(scale_embedding=False))),
    "olmo_clipped": Case("olmo", BASE | dict(clip_qkv=0.7), [], wrong=wrong(none=dict(clip_qkv=None))),
    "opt_post": Case("opt", published.OPT | dict(do_layer_norm_before=False, enable_bias=False, activation_function="gelu_new"), [],
                     wrong=wrong(before=dict(do_layer_norm_before=True))),
    "starcoder2_plain": Case("starcoder2", published.STARCODER2 | dict(use_bias=False, sliding_window=None, num_key_value_heads=1,
                                                                      tie_word_embeddings=False, norm_epsilon=1e-3), [],
                             wrong=wrong(eps=dict(norm_epsilon=1e-1), window=dict(sliding_window=3))),
    "dbrx_plain": Case("dbrx", published.DBRX | dict(attn_config=dict(kv_n_heads=1, clip_qkv=2.0, rope_theta=300.0),
                                                     ffn_config=published.DBRX_EXPERTS | dict(moe_normalize_expert_weights=None)),
                       [], tokens=LONGER, wrong=wrong(two=dict(ffn_config=published.DBRX_EXPERTS | dict(moe_top_k=2)))),
    "gpt_oss_gates": Case("gpt_oss", published.GPT_OSS, [], tokens=LONGER,
                          wrong=wrong(no_limit=dict(swiglu_limit=1000.0), plain=dict(swiglu_alpha=1.0))),
    "gpt_oss_odd": Case("gpt_oss", published.GPT_OSS | rope("default", theta=300.0) | dict(
        hidden_size=24, attention_bias=False, layer_types=["full_attention", "sliding_attention", "full_attention"], num_key_value_heads=1),
        [], tokens=LONGER, wrong=wrong(windows=dict(layer_types=["full_attention"] * 3), theta=rope("default"))),
    "deepseek": Case("deepseek", deepseek_moe.CONFIG, [], tokens=LONGER,
                     wrong=wrong(normalized=dict(norm_topk_prob=True), dense=dict(first_k_dense_replace=2), two=dict(num_experts_per_tok=2))),
    "glm4_moe_normed": Case("glm4_moe", GLM4_MOE | dict(use_qk_norm=True, n_group=1, topk_group=1), [], tokens=LONGER,
                            wrong=wrong(factor=dict(routed_scaling_factor=1.0))),
}


def model_of(case, changes={}):
    make = deepseek_moe.model_of if case.family == "deepseek" else lambda config: published.model_of(case.family, config)
    return make(case.config | changes)


def saved(case, model):
    """config.json and the shapes of the tensors, of a folder as save_pretrained writes it."""
    if case.family == "deepseek":
        return case.config, deepseek_moe.shapes(model)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((Path(folder) / "config.json").read_text())
        data = (Path(folder) / "model.safetensors").read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    return config, {name: tensor["shape"] for name, tensor in sorted(header.items()) if name != "__metadata__"}


def result(case, model):
    with torch.no_grad():
        out = model(**published.inputs(case))
    rows = out.last_hidden_state if case.family in HEADLESS else out.logits
    return rows[0, 0 if case.family in ENCODERS else -1].tolist()


def generate(path):
    cases, moved = {}, {}
    for name, case in CASES.items():
        model = model_of(case)
        right = result(case, model)
        for got, figure in zip(right, case.published, strict=False):
            bugs.expect(name, got, figure, 4)
        config, tensors = saved(case, model)
        cases[name] = {"config": config, "tensors": tensors, "tokens": case.tokens, "decoder_tokens": case.decoder_tokens, "result": right,
                       "wrong": {}}
        for mistake, (changes, _) in case.wrong.items():
            values = result(case, model_of(case, changes))
            apart = common.relative(values, right)
            if apart < kDiscriminates:
                raise SystemExit(f"error: folders: {name}: '{mistake}' moves the result by only {apart}")
            moved.setdefault(name, {})[mistake] = common.rounded(apart)
            cases[name]["wrong"][mistake] = values
    path.parent.mkdir(parents=True, exist_ok=True)
    # One case a line: configs are for programs to read.
    path.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in cases.items()) + "\n}\n")
    return {"cases": len(cases), "moved_by": moved}
