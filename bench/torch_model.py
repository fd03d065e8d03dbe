"""A decoder-only transformer in PyTorch, built from a Transept spec and written for speed on a CPU: fused projections,
F.scaled_dot_product_attention, F.rms_norm. The peer of compare_training.py and compare_quality.py."""

import math

import torch
from torch import nn
from torch.nn import functional as F

GROUPS = ("norm", "attention", "ffn")


def uniform_layers(spec):
    """(number of layers, their groups) of a spec document; ValueError when layers differ, which this peer has no need of."""
    entries = spec.get("layers") or [{"repeat": spec.get("num_hidden_layers", 1)}]
    merged = [{g: dict(spec.get(g, {})) | dict(entry.get(g, {})) for g in GROUPS} for entry in entries]
    if any(m != merged[0] for m in merged):
        raise ValueError("the layers differ")
    return sum(entry.get("repeat", 1) for entry in entries), merged[0]


class Norm(nn.Module):
    def __init__(self, width, spec):
        super().__init__()
        self.eps, self.shape, self.rms = spec.get("eps", 1e-5), (width,), spec.get("kind", "rmsnorm") == "rmsnorm"
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if not self.rms and spec.get("bias", True) else None

    def forward(self, x):
        if self.rms:
            return F.rms_norm(x, self.shape, self.weight, self.eps)
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, width, spec):
        super().__init__()
        self.heads = spec["num_attention_heads"]
        self.groups = spec.get("num_key_value_heads") or self.heads
        self.size = spec.get("head_dim") or width // self.heads
        if spec.get("sliding_window"):
            raise ValueError("attention.sliding_window is not 0")
        self.qkv = nn.Linear(width, (self.heads + 2 * self.groups) * self.size, bias=spec.get("qkv_bias", False))
        self.output = nn.Linear(self.heads * self.size, width, bias=spec.get("output_bias", False))

    def forward(self, x, rope):
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, self.heads + 2 * self.groups, self.size).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.groups, self.groups), dim=1)
        if rope is not None:
            q, k = rotate(q, *rope), rotate(k, *rope)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.groups != self.heads)
        return self.output(y.transpose(1, 2).reshape(batch, length, -1))


class Ffn(nn.Module):
    ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "swiglu": F.silu,
                   "geglu": lambda x: F.gelu(x, approximate="tanh")}

    def __init__(self, width, spec):
        super().__init__()
        kind, bias, inner = spec.get("kind", "swiglu"), spec.get("bias", False), spec["intermediate_size"]
        self.act, self.gated = self.ACTIVATIONS[kind], kind in ("swiglu", "geglu")
        self.up = nn.Linear(width, inner * (2 if self.gated else 1), bias=bias)
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, x):
        if not self.gated:
            return self.down(self.act(self.up(x)))
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(self.act(gate) * up)


class Block(nn.Module):
    def __init__(self, width, groups):
        super().__init__()
        self.attention_norm, self.attention = Norm(width, groups["norm"]), Attention(width, groups["attention"])
        self.ffn_norm, self.ffn = Norm(width, groups["norm"]), Ffn(width, groups["ffn"])

    def forward(self, x, rope):
        x = x + self.attention(self.attention_norm(x), rope)
        return x + self.ffn(self.ffn_norm(x))


class Decoder(nn.Module):
    """forward(ids, targets) is the mean cross-entropy."""

    def __init__(self, spec):
        super().__init__()
        count, groups = uniform_layers(spec)
        width, vocab, position = spec["hidden_size"], spec["vocab_size"], spec.get("position", {"kind": "rope"})
        if groups["norm"].get("placement", "pre") != "pre":
            raise ValueError("norm.placement is not pre")
        if spec.get("dropout"):
            raise ValueError("dropout is not 0")
        self.embedding = nn.Embedding(vocab, width)
        self.position = nn.Embedding(spec["max_position_embeddings"], width) if position["kind"] == "learned" else None
        self.layers = nn.ModuleList(Block(width, groups) for _ in range(count))
        self.final_norm = Norm(width, groups["norm"])
        self.head = nn.Linear(width, vocab, bias=False)
        std = spec.get("initializer_range", 0.02)
        for name, p in self.named_parameters():
            if p.dim() >= 2:
                residual = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(p, std=std / math.sqrt(2 * count) if residual else std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        if spec.get("tie_word_embeddings", True):
            self.head.weight = self.embedding.weight
        if position["kind"] == "rope":
            size = self.layers[0].attention.size
            inverse = position.get("theta", 10000.0) ** (-torch.arange(0, size, 2) / size)
            angle = torch.outer(torch.arange(spec["max_position_embeddings"]), torch.cat((inverse, inverse)))
            self.register_buffer("cos", angle.cos(), persistent=False)
            self.register_buffer("sin", angle.sin(), persistent=False)
        else:
            self.cos = self.sin = None

    def logits(self, ids):
        length = ids.shape[1]
        x = self.embedding(ids)
        if self.position is not None:
            x = x + self.position.weight[:length]
        rope = None if self.cos is None else (self.cos[:length], self.sin[:length])
        for layer in self.layers:
            x = layer(x, rope)
        return self.head(self.final_norm(x))

    def forward(self, ids, targets, reduction="mean"):
        return F.cross_entropy(self.logits(ids).flatten(0, 1), targets.flatten(), reduction=reduction)


def adamw(model, lr, beta2, weight_decay):
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}],
                             lr=lr, betas=(0.9, beta2), eps=1e-8, fused=True)


def train_step(model, forward, optimizer, ids, targets, clip):
    loss = forward(ids, targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss
