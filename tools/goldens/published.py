"""bugs/published.json: last logits of tiny models of many families, for public reports on positions, masks and score options.

Each model is a Hugging Face class with a small config, every parameter of which is filled by bugs.hash_fill, so that no weights need
to be stored: a reader fills its own model by the same rule. A case holds the config, the tokens, the right logits of the last position
(of the first one where the model is an encoder) and, by the mistake's name, those that a planted mistake gives. The figures are
asserted against those of the published analysis where it has some.
"""

import copy
import math
from typing import NamedTuple

import torch
import transformers as hf

from . import bugs, common

PROMPT = bugs.PROMPT
kDiscriminates = 5e-4  # in the measure of common.relative: over twice the bound on logits, since the two GELUs differ by little
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
    "gemma3": (hf.Gemma3TextConfig, hf.Gemma3ForCausalLM), "bloom": (hf.BloomConfig, hf.BloomForCausalLM),
    "mpt": (hf.MptConfig, hf.MptForCausalLM), "gpt2": (hf.GPT2Config, hf.GPT2LMHeadModel),
    "t5": (hf.T5Config, hf.T5ForConditionalGeneration), "bert": (hf.BertConfig, hf.BertForMaskedLM),
    "bart": (hf.BartConfig, hf.BartForConditionalGeneration), "olmo2": (hf.Olmo2Config, hf.Olmo2ForCausalLM),
    "cohere": (hf.CohereConfig, hf.CohereForCausalLM), "gpt_neox": (hf.GPTNeoXConfig, hf.GPTNeoXForCausalLM),
    "gptj": (hf.GPTJConfig, hf.GPTJForCausalLM), "deepseek_v2": (hf.DeepseekV2Config, hf.DeepseekV2ForCausalLM),
    "deepseek_v3": (hf.DeepseekV3Config, hf.DeepseekV3ForCausalLM),
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
        "gemma3", GEMMA | layered(LINEAR, PLAIN), [-2.0863, -0.29246, -1.13564, 2.54687, -1.18358, -0.25056],
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


def model_of(family, config):
    config_class, model_class = FAMILIES[family]
    model = model_class(config_class(**copy.deepcopy(config), attn_implementation="eager")).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():  # a tied table is listed once, by its saved name
            filled = bugs.hash_fill(name, tuple(value.shape))
            if family.startswith("gemma") and value.dim() == 1 and name.endswith("weight"):
                filled -= 1.0
            value.copy_(filled)
    return model


def last_logits(case, changes):
    model = model_of(case.family, case.config | changes)
    decoder = {"decoder_input_ids": torch.tensor([case.decoder_tokens])} if case.decoder_tokens else {}
    with torch.no_grad():
        return model(torch.tensor([case.tokens]), **decoder).logits[0, 0 if case.family == "bert" else -1].tolist()


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
    return {"cases": list(CASES), "moved_by": moved}
