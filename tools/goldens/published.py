"""bugs/published.json: last logits of tiny models of many families, for public reports on positions, masks and score options, and
bugs/published_training.json: their losses and gradients.

Each model is a Hugging Face class with a small config, every parameter of which is filled by bugs.hash_fill, so that no weights need
to be stored: a reader fills its own model by the same rule. A case holds the config, the tokens, the right logits of the last position
(of the first one where the model is an encoder) and, by the mistake's name, those that a planted mistake gives. The figures are
asserted against those of the published analysis where it has some.

Of the gradient of every tensor, its norm and its product with the tensor `name.gradient` of bugs.hash_fill are kept. The loss is the
mean cross-entropy of each next token, and with experts kBalance times the balance losses of the layers, each layer by itself:
load_balancing_loss_func over all of them at once multiplies means over layers, which is no sum of losses of layers.
"""

import copy
import math
import sys
from typing import NamedTuple

import torch
import transformers as hf
from transformers.core_model_loading import revert_weight_conversion

from . import bugs, common

PROMPT = bugs.PROMPT
kDiscriminates = 5e-4  # in the measure of common.relative: over twice the bound on logits, since the two GELUs differ by little
kBalance = 0.125  # large, so that balance is seen in a router's gradient
kNearTie = 1e-5  # two scores of size 1 this near could change places by rounding
BASE = dict(vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
GEMMA = BASE | dict(tie_word_embeddings=True, head_dim=4, query_pre_attn_scalar=4, sliding_window=4)


def rope(kind, theta=10000.0, **fields):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta} | fields}


def layered(full, sliding):
    return {"layer_types": ["sliding_attention", "full_attention"],
            "rope_parameters": {"full_attention": full, "sliding_attention": sliding}}


class Case(NamedTuple):
    family: str
    config: dict
    published: list
    tokens: list = PROMPT
    decoder_tokens: list = []
    # Config fields of each mistake, with the first of its logits where they are published.
    wrong: dict = {}


FAMILIES = {
    "llama": (hf.LlamaConfig, hf.LlamaForCausalLM), "qwen3": (hf.Qwen3Config, hf.Qwen3ForCausalLM),
    "mistral": (hf.MistralConfig, hf.MistralForCausalLM), "gemma": (hf.GemmaConfig, hf.GemmaForCausalLM),
    "gemma2": (hf.Gemma2Config, hf.Gemma2ForCausalLM),
    "gemma3_text": (hf.Gemma3TextConfig, hf.Gemma3ForCausalLM), "bloom": (hf.BloomConfig, hf.BloomForCausalLM),
    "mpt": (hf.MptConfig, hf.MptForCausalLM), "gpt2": (hf.GPT2Config, hf.GPT2LMHeadModel),
    "t5": (hf.T5Config, hf.T5ForConditionalGeneration), "bert": (hf.BertConfig, hf.BertForMaskedLM),
    "bart": (hf.BartConfig, hf.BartForConditionalGeneration), "olmo2": (hf.Olmo2Config, hf.Olmo2ForCausalLM),
    "cohere": (hf.CohereConfig, hf.CohereForCausalLM), "gpt_neox": (hf.GPTNeoXConfig, hf.GPTNeoXForCausalLM),
    "gptj": (hf.GPTJConfig, hf.GPTJForCausalLM), "deepseek_v2": (hf.DeepseekV2Config, hf.DeepseekV2ForCausalLM),
    "deepseek_v3": (hf.DeepseekV3Config, hf.DeepseekV3ForCausalLM),
    "qwen2": (hf.Qwen2Config, hf.Qwen2ForCausalLM), "cohere2": (hf.Cohere2Config, hf.Cohere2ForCausalLM),
    "olmo": (hf.OlmoConfig, hf.OlmoForCausalLM), "phi": (hf.PhiConfig, hf.PhiForCausalLM), "phi3": (hf.Phi3Config, hf.Phi3ForCausalLM),
    "falcon": (hf.FalconConfig, hf.FalconForCausalLM), "bert_base": (hf.BertConfig, hf.BertModel),
    "roberta": (hf.RobertaConfig, hf.RobertaForMaskedLM), "roberta_base": (hf.RobertaConfig, hf.RobertaModel),
    "marian": (hf.MarianConfig, hf.MarianMTModel),
}
LINEAR = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
CONTROL = [-1.58937, -0.93655, 0.65972, 2.31488, 1.43033, 0.16169]
YARN = dict(factor=4.0, original_max_position_embeddings=16)
# Layers without experts: the attention is what is looked at.
DEEPSEEK = BASE | dict(num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=8, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=5,
                       first_k_dense_replace=2)
DEEPSEEK_YARN = YARN | dict(mscale=0.7, mscale_all_dim=0.9)
AMPLITUDE = (0.07 * math.log(4) + 1) / (0.09 * math.log(4) + 1)
DYNAMIC = BASE | dict(max_position_embeddings=8) | rope("dynamic", factor=2.0)
ENCODER = dict(vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
               type_vocab_size=2, pad_token_id=0)

CASES = {
    "control": Case("llama", BASE, CONTROL),
    "yarn": Case("llama", BASE | rope("yarn", **YARN), [-1.74761, -0.72136, 0.67076, 2.40336, 1.12282, 0.05673],
                 wrong={"no scaling": (rope("default"), CONTROL)}),
    "yarn_attention_factor": Case("llama", BASE | rope("yarn", attention_factor=1.0, **YARN),
                                  [-1.64843, -0.88068, 0.65387, 2.31465, 1.45804, 0.17132],
                                  wrong={"computed factor": (rope("yarn", **YARN), [-1.74761])}),
    "gemma3_two_tables": Case(
        "gemma3_text", GEMMA | layered(LINEAR, PLAIN), [-2.0863, -0.29246, -1.13564, 2.54687, -1.18358, -0.25056],
        wrong={"no factor": (layered({"rope_type": "default", "rope_theta": 1e6}, PLAIN), [-1.84278, -0.42426]),
               "factor on both": (layered(LINEAR, LINEAR | {"rope_theta": 1e4}), [-1.87055, 0.00119]),
               "one theta": (layered(LINEAR, PLAIN | {"rope_theta": 1e6}), [-2.09876, -0.32237, -1.14434, 2.56648])}),
    "dynamic_within": Case("llama", DYNAMIC, [-1.13631, -1.58545, 1.63015, 1.94018, -1.14013, 0.0264], tokens=PROMPT[:6]),
    "dynamic_beyond": Case("llama", DYNAMIC, [0.43654, -1.37855, -0.93054, 1.28284, 1.15871, -1.25363], tokens=PROMPT + [1, 2],
                           wrong={"no scaling": (rope("default"), [])}),
    "head_dim": Case("qwen3", BASE | dict(head_dim=6), [-0.3532, 0.32987, -0.8192, 0.31243, -1.60068, 0.75627]),
    "window": Case("mistral", BASE | dict(sliding_window=4), [0.13262, -0.9522, -0.11413, 0.41374, 2.3867, -0.93566],
                   wrong={"five keys": (dict(sliding_window=5), [-1.22464, -0.61663]), "no window": (dict(sliding_window=None), CONTROL)}),
    "gemma2_caps": Case(
        "gemma2", GEMMA | dict(attn_logit_softcapping=1.0, final_logit_softcapping=2.0),
        [-0.89272, -0.45618, -1.32419, 1.57948, -1.34958, -0.81236],
        wrong={"no caps": (dict(attn_logit_softcapping=None, final_logit_softcapping=None), [-1.81687, -0.32788]),
               "no final cap": (dict(final_logit_softcapping=None), []), "no score cap": (dict(attn_logit_softcapping=None), [])}),
    "gemma": Case("gemma", BASE | dict(tie_word_embeddings=True, head_dim=4, hidden_size=40), [],
                  wrong={"exact gelu": (dict(hidden_act="gelu_python"), [])}),
    "bloom": Case("bloom", dict(vocab_size=32, hidden_size=24, n_layer=2, n_head=6, bos_token_id=1, eos_token_id=2, pad_token_id=0),
                  [-0.05843, 2.63442, -0.46174, -0.68026, 0.43768, 0.55867]),
    "mpt": Case("mpt", dict(vocab_size=32, d_model=24, n_layers=2, n_heads=6, max_seq_len=64),
                [0.81006, 2.60146, 3.45221, 1.1033, 0.74504, -0.94268]),
    "t5": Case("t5", dict(vocab_size=32, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_decoder_layers=2, num_heads=4,
                          relative_attention_num_buckets=8, relative_attention_max_distance=16, feed_forward_proj="relu",
                          tie_word_embeddings=True, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0),
               [0.09096, 0.47328, -0.04709, 0.70441, 0.01723, -0.18391], tokens=[3, 7, 11, 15, 19, 1], decoder_tokens=[0, 5, 9, 13]),
    "t5_gated": Case("t5", dict(vocab_size=32, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_decoder_layers=2, num_heads=4,
                                feed_forward_proj="gated-gelu", tie_word_embeddings=False, pad_token_id=0, eos_token_id=1,
                                decoder_start_token_id=0), [], tokens=[3, 7, 11, 15, 19, 1], decoder_tokens=[0, 5, 9, 13]),
    "gpt2": Case("gpt2", dict(vocab_size=32, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2,
                              pad_token_id=0), [1.96928, -0.8075, -1.81847, 0.08193, -0.02371, -0.10369], tokens=PROMPT[:5]),
    "bert": Case("bert", ENCODER, [], tokens=PROMPT[:5]),
    "bart": Case("bart", dict(vocab_size=32, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                              decoder_attention_heads=4, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=64,
                              pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, scale_embedding=False),
                 [], tokens=[0, 7, 11, 15, 19, 2], decoder_tokens=[2, 0, 5, 9, 13]),
    "olmo2": Case("olmo2", BASE, []),
    "cohere": Case("cohere", BASE | dict(tie_word_embeddings=True, use_qk_norm=True), []),
    "gpt_neox": Case("gpt_neox", dict(vocab_size=32, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                      max_position_embeddings=64, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False), []),
    "gptj": Case("gptj", dict(vocab_size=32, n_positions=64, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, bos_token_id=1,
                              eos_token_id=2, tie_word_embeddings=False), []),
    "deepseek_v2": Case("deepseek_v2", DEEPSEEK, []),
    "deepseek_v2_yarn": Case("deepseek_v2", DEEPSEEK | dict(q_lora_rank=12, attention_bias=True) | rope("yarn", **DEEPSEEK_YARN), [],
                             wrong={"scores not multiplied": (rope("yarn", attention_factor=AMPLITUDE, **YARN), []),
                                    "no scaling": (rope("default"), [])}),
    "deepseek_v3": Case("deepseek_v3", DEEPSEEK | dict(q_lora_rank=12), [],
                        wrong={"pairs half a head apart": (dict(rope_interleave=False), [])}),
    "deepseek_v3_yarn": Case("deepseek_v3", DEEPSEEK | rope("yarn", **YARN, mscale=1.0, mscale_all_dim=1.0), []),
}

# Mixtures of experts. Glm4Moe routes as DeepSeek-V3 does, with the usual attention.
LONGER = [3, 7, 11, 15, 19, 23, 27, 31, 5, 9, 14, 2, 28, 17, 8, 25, 12, 30, 1, 20]
EXPERTS = BASE | rope("default") | dict(hidden_size=32, intermediate_size=28, num_hidden_layers=3, num_experts_per_tok=2, rms_norm_eps=1e-6)
FINE = EXPERTS | dict(num_experts=8, moe_intermediate_size=12)
GLM4_MOE = EXPERTS | rope("default", partial_rotary_factor=0.5) | dict(
    head_dim=8, moe_intermediate_size=12, n_routed_experts=8, n_group=4, topk_group=2, n_shared_experts=2, first_k_dense_replace=1,
    norm_topk_prob=True, routed_scaling_factor=2.5, attention_bias=True)
FAMILIES |= {
    "mixtral": (hf.MixtralConfig, hf.MixtralForCausalLM), "qwen3_moe": (hf.Qwen3MoeConfig, hf.Qwen3MoeForCausalLM),
    "qwen2_moe": (hf.Qwen2MoeConfig, hf.Qwen2MoeForCausalLM), "olmoe": (hf.OlmoeConfig, hf.OlmoeForCausalLM),
    "glm4_moe": (hf.Glm4MoeConfig, hf.Glm4MoeForCausalLM),
}
CASES |= {
    "mixtral": Case("mixtral", EXPERTS | dict(num_local_experts=8), [], tokens=LONGER,
                    wrong={"one expert a token": (dict(num_experts_per_tok=1), []), "three experts": (dict(num_experts_per_tok=3), [])}),
    "qwen3_moe": Case("qwen3_moe", FINE | dict(head_dim=6, num_experts_per_tok=3, norm_topk_prob=True), [], tokens=LONGER,
                      wrong={"not normalized": (dict(norm_topk_prob=False), [])}),
    "qwen2_moe": Case("qwen2_moe", FINE | dict(num_hidden_layers=2, num_experts_per_tok=3, shared_expert_intermediate_size=20,
                                               mlp_only_layers=[0], norm_topk_prob=False), [], tokens=LONGER,
                      wrong={"normalized": (dict(norm_topk_prob=True), []), "the other layer dense": (dict(mlp_only_layers=[1]), [])}),
    "olmoe": Case("olmoe", EXPERTS | dict(num_experts=8, num_experts_per_tok=3, norm_topk_prob=False), [], tokens=LONGER,
                  wrong={"normalized": (dict(norm_topk_prob=True), [])}),
    "glm4_moe": Case("glm4_moe", GLM4_MOE, [], tokens=LONGER,
                     wrong={"no factor": (dict(routed_scaling_factor=1.0), []), "not normalized": (dict(norm_topk_prob=False), []),
                            "any group": (dict(topk_group=4), []), "one group": (dict(topk_group=1), [])}),
}

# Biases in experts and router, and gates wide enough to meet their limit; heads wider than the hidden size has room for.
GPT_OSS = BASE | rope("yarn", theta=20.0, factor=4.0, original_max_position_embeddings=16, truncate=False) | dict(
    hidden_size=128, head_dim=10, num_local_experts=5, num_experts_per_tok=2, num_hidden_layers=3, sliding_window=4)
DBRX_ATTENTION, DBRX_EXPERTS = dict(kv_n_heads=2, clip_qkv=0.8, rope_theta=300.0), dict(ffn_hidden_size=20, moe_num_experts=6, moe_top_k=3)
DBRX = dict(vocab_size=32, d_model=32, n_heads=4, n_layers=3, max_seq_len=64, attn_config=DBRX_ATTENTION, ffn_config=DBRX_EXPERTS,
            bos_token_id=1, eos_token_id=2) | rope("default", theta=300.0)
OPT = dict(vocab_size=32, hidden_size=24, word_embed_proj_dim=24, ffn_dim=40, num_hidden_layers=2, num_attention_heads=3,
           max_position_embeddings=20, bos_token_id=1, eos_token_id=2, pad_token_id=0)
STARCODER2 = BASE | dict(hidden_size=24, num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=True, sliding_window=4)
FAMILIES |= {
    "gpt_oss": (hf.GptOssConfig, hf.GptOssForCausalLM), "dbrx": (hf.DbrxConfig, hf.DbrxForCausalLM),
    "opt": (hf.OPTConfig, hf.OPTForCausalLM), "starcoder2": (hf.Starcoder2Config, hf.Starcoder2ForCausalLM),
}
CASES |= {
    "gpt_oss": Case("gpt_oss", GPT_OSS, [], tokens=LONGER,
                    wrong={"five keys": (dict(sliding_window=5), []),
                           "whole pairs": (rope("yarn", theta=20.0, factor=4.0, original_max_position_embeddings=16, truncate=True), [])}),
    "dbrx": Case("dbrx", DBRX, [], tokens=LONGER,
                 wrong={"not clipped": (dict(attn_config=DBRX_ATTENTION | dict(clip_qkv=1000.0)), []),
                        "not normalized": (dict(ffn_config=DBRX_EXPERTS | dict(moe_normalize_expert_weights=None)), [])}),
    "opt": Case("opt", OPT, [], wrong={"norms behind": (dict(do_layer_norm_before=False), []), "gelu": (dict(activation_function="gelu"), [])}),
    "starcoder2": Case("starcoder2", STARCODER2, [], wrong={"five keys": (dict(sliding_window=5), []), "relu": (dict(hidden_act="relu"), [])}),
}

# Experts and latent attention together; position 0 would hide the factor that YaRN puts on the scores (transformers #47435).
DEEPSEEK_V2 = DEEPSEEK | rope("default") | dict(
    num_hidden_layers=3, q_lora_rank=12, first_k_dense_replace=1, moe_intermediate_size=10, n_routed_experts=8, n_shared_experts=2,
    num_experts_per_tok=3, topk_method="group_limited_greedy", n_group=4, topk_group=2, routed_scaling_factor=1.5)
DEEPSEEK_V3 = BASE | rope("yarn", **YARN, mscale=1.0, mscale_all_dim=1.0) | dict(
    moe_intermediate_size=8, first_k_dense_replace=1, num_attention_heads=2, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2,
    n_group=2, topk_group=1, kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=6, q_lora_rank=6,
    routed_scaling_factor=2.5, norm_topk_prob=True)
CASES |= {
    "deepseek_v2_experts": Case("deepseek_v2", DEEPSEEK_V2, [], tokens=LONGER,
                                wrong={"any group": (dict(topk_method="greedy"), []), "no factor": (dict(routed_scaling_factor=1.0), [])}),
    "deepseek_v3_experts": Case("deepseek_v3", DEEPSEEK_V3, [0.2714, -0.61216, 0.49757, -0.56446, 0.8385, -0.86804],
                                wrong={"no scaling": (rope("default"), [0.22336, -0.63836, 0.41856, -0.30125, 0.7914, -0.78443]),
                                       "no factor": (dict(routed_scaling_factor=1.0), [])}),
}


def model_of(family, config):
    config_class, model_class = FAMILIES[family]
    settings = config_class(**copy.deepcopy(config), attn_implementation="eager", experts_implementation="eager")
    empty = model_class(settings)
    tensors = dict(empty.named_parameters())  # a tied table is listed once, by its saved name
    tensors |= {k: v for k, v in empty.named_buffers() if k.endswith("e_score_correction_bias")}
    if family == "marian":  # whose bias on the logits is no parameter, and not zero either; positions are waves
        tensors = {k: v for k, v in tensors.items() if "embed_positions" not in k} | {"final_logits_bias": empty.final_logits_bias}
    filled = {}
    with torch.no_grad():
        # Checkpoints hold the experts one by one, and their names are the ones that are hashed.
        for name, value in revert_weight_conversion(empty, tensors).items():
            filled[name] = bugs.hash_fill(name, tuple(value.shape))
            if family.startswith("gemma") and value.dim() == 1 and name.endswith("weight"):
                filled[name] -= 1.0
    return model_class.from_pretrained(None, config=settings, state_dict=filled).eval()


def inputs(case):
    return {"input_ids": torch.tensor([case.tokens])} | (
        {"decoder_input_ids": torch.tensor([case.decoder_tokens])} if case.decoder_tokens else {})


def last_logits(case, changes):
    model = model_of(case.family, case.config | changes)
    with torch.no_grad():
        return model(**inputs(case)).logits[0, 0 if case.family == "bert" else -1].tolist()


def balance_of_layers(model, router_logits, mask=None):
    """What the family itself computes, of each layer with experts."""
    function = sys.modules[type(model).__module__].load_balancing_loss_func
    return [function((logits,), logits.shape[-1], model.config.num_experts_per_tok, mask) for logits in router_logits]


def routers_of(model):
    return [m for m in model.modules() if type(m).__name__.lower().endswith("topkrouter")]


def nearest_scores(model, router_logits):
    """The least difference between two scores of one token that experts, or groups of them, are chosen by."""
    nearest = math.inf
    for router, logits in zip(routers_of(model), router_logits, strict=True):
        logits = logits.detach()
        choice = [logits]
        if hasattr(router, "e_score_correction_bias"):
            biased = logits.sigmoid() + router.e_score_correction_bias
            choice = [biased, biased.view(len(logits), router.num_group, -1).topk(2).values.sum(-1)]
        nearest = min(nearest, *(float(c.sort().values.diff().min()) for c in choice))
    return nearest


def training(name, case):
    model = model_of(case.family, case.config)
    routed = bool(routers_of(model))
    out = model(**inputs(case), **({"output_router_logits": True} if routed else {}))
    targets = torch.tensor((case.decoder_tokens or case.tokens)[1:])
    loss = torch.nn.functional.cross_entropy(out.logits[0, :-1], targets)
    result = {"loss": loss.item()}
    if routed:
        nearest = nearest_scores(model, out.router_logits)
        if nearest < kNearTie:
            raise SystemExit(f"error: bugs: {name}: two scores of a router differ by {nearest} only")
    if getattr(out, "aux_loss", None) is not None:
        of_layers = balance_of_layers(model, out.router_logits)
        routers = [r.weight for r in routers_of(model)]
        alone = torch.autograd.grad(loss, routers, retain_graph=True)
        loss = loss + kBalance * sum(of_layers)
        result["balance"] = {"coefficient": kBalance, "of_layers": [v.item() for v in of_layers], "of_all_layers": out.aux_loss.item()}
    loss.backward()
    if "balance" in result:
        apart = min(common.relative(a.flatten(), r.grad.flatten()) for a, r in zip(alone, routers, strict=True))
        if apart < kDiscriminates:
            raise SystemExit(f"error: bugs: {name}: balance moves the gradient of a router by only {apart}")
    gradients = {k: torch.zeros_like(p) if p.grad is None else p.grad for k, p in model.named_parameters()}
    result["gradients"] = {}
    for key, gradient in revert_weight_conversion(model, gradients).items():
        g = gradient.double().flatten()
        product = g @ bugs.hash_fill(key + ".gradient", (len(g),)).double()
        result["gradients"][key] = [g.norm().item(), product.item()]
    return result


def padded_balance():
    """Rows of 10 and 16 tokens: padding to the longer one counts for no expert (huggingface/transformers #28505)."""
    case = Case("mixtral", BASE | dict(num_local_experts=4, num_experts_per_tok=2), [])
    model = model_of(case.family, case.config)
    pads = [0] * 6
    mask = torch.tensor([[1] * len(PROMPT) + [0] * len(pads), [1] * 16])

    def balance(rows, mask=None):
        with torch.no_grad():
            out = model(torch.tensor(rows), attention_mask=mask, output_router_logits=True)
        return out.aux_loss.item(), [v.item() for v in balance_of_layers(model, out.router_logits, mask)]

    bugs.expect("balance", balance([PROMPT])[0], 2.6490693, 5)
    bugs.expect("balance, padded", balance([PROMPT + pads], mask[:1])[0], 2.6490693, 5)
    bugs.expect("balance, pads counted", balance([PROMPT + pads])[0], 2.2080340, 5)
    rows = [PROMPT, LONGER[:16]]
    right, wrong = (balance([PROMPT + pads, rows[1]], m)[1] for m in (mask, None))
    if common.relative(wrong, right) < kDiscriminates:
        raise SystemExit("error: bugs: pads do not move the balance loss")
    return {"family": case.family, "config": case.config, "rows": rows, "of_layers": right, "wrong": {"pads counted": wrong}}


def generate(path):
    cases, moved = {}, {}
    for name, case in CASES.items():
        right = last_logits(case, {})
        for got, published in zip(right, case.published, strict=False):
            bugs.expect(name, got, published, 4)
        wrongs = {}
        for mistake, (changes, published) in case.wrong.items():
            wrongs[mistake] = last_logits(case, changes)
            for got, figure in zip(wrongs[mistake], published, strict=False):
                bugs.expect(f"{name}, {mistake}", got, figure, 4)
            apart = common.relative(wrongs[mistake], right)
            if apart < kDiscriminates:
                raise SystemExit(f"error: bugs: {name}: '{mistake}' moves the logits by only {apart}")
            moved.setdefault(name, {})[mistake] = common.rounded(apart)
        cases[name] = {"family": case.family, "config": case.config, "tokens": case.tokens, "decoder_tokens": case.decoder_tokens,
                       "logits": right, "wrong": wrongs}
    common.write_json(path, cases)
    common.write_json(path.with_name("published_training.json"),
                      {"cases": {name: training(name, case) for name, case in CASES.items()}, "padded_balance": padded_balance()})
    return {"cases": list(CASES), "moved_by": moved}
