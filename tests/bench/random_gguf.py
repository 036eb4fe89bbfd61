#!/usr/bin/env python3
"""Writes a GGUF file of a llama in a real model's shape with random weights, to measure with.

usage: random_gguf.py SHAPE TYPE OUT
  SHAPE  135m (SmolLM2), 1.1b (TinyLlama) or 0.6b (the shape of Qwen3's, as a llama)
  TYPE   q8_0, q4_0, q4_k, or q4_k_m: q6_k for ends, some values and some down-projections
Rows that a block of 256 does not divide get q8_0. The same arguments give the same file. It has a
vocabulary of made-up words, so that other programs open it too.
"""
import random
import struct
import sys

SHAPES = {  # Width, inner width, blocks, heads, their keys' heads, head's size, vocabulary, tied.
    "135m": (576, 1536, 30, 9, 3, 64, 49152, True),
    "1.1b": (2048, 5632, 22, 32, 4, 64, 32000, False),
    "0.6b": (1024, 3072, 28, 16, 8, 128, 151936, True),
}
# Number in the format, elements of a block, its bytes.
TYPES = {"f32": (0, 1, 4), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144),
         "q6_k": (14, 256, 210)}
U32, I32, F32, TEXT, LIST = 4, 5, 6, 8, 9


def half(x):
    return struct.pack("<e", x)


def random_block(rng, kind):
    """A block whose elements are about as large as weights are."""
    if kind == "q8_0":
        return half(0.02 / 127) + rng.randbytes(32)
    if kind == "q4_0":
        return half(0.02 / 8) + rng.randbytes(16)
    if kind == "q4_k":
        return half(0.02 / 320) + half(0.02 / 40) + rng.randbytes(140)
    return rng.randbytes(208) + half(0.02 / 3200)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def list_of(kind, items):
    return struct.pack("<IQ", kind, len(items)) + b"".join(items)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in SHAPES or sys.argv[2] not in (
            "q8_0", "q4_0", "q4_k", "q4_k_m"):
        sys.exit(__doc__)
    shape, kind, out = sys.argv[1:]
    width, inner, blocks, heads, kv_heads, dim, vocabulary, tied = SHAPES[shape]
    plain = "q4_k" if kind == "q4_k_m" else kind
    costly = "q6_k" if kind == "q4_k_m" else kind

    tensors = []

    def add(name, rows, columns, kind):
        kind = kind if columns % TYPES[kind][1] == 0 else "q8_0"
        tensors.append((name + ".weight", rows, columns, kind))

    add("token_embd", vocabulary, width, costly)
    for b in range(blocks):
        some = costly if b % 3 == 2 else plain
        add(f"blk.{b}.attn_norm", 1, width, "f32")
        add(f"blk.{b}.attn_q", heads * dim, width, plain)
        add(f"blk.{b}.attn_k", kv_heads * dim, width, plain)
        add(f"blk.{b}.attn_v", kv_heads * dim, width, some)
        add(f"blk.{b}.attn_output", width, heads * dim, plain)
        add(f"blk.{b}.ffn_norm", 1, width, "f32")
        add(f"blk.{b}.ffn_gate", inner, width, plain)
        add(f"blk.{b}.ffn_up", inner, width, plain)
        add(f"blk.{b}.ffn_down", width, inner, some)
    add("output_norm", 1, width, "f32")
    if not tied:
        add("output", vocabulary, width, costly)

    words = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    kinds = [2, 3, 3] + [6] * 256  # Unknown, control, bytes; all others are words.
    kinds += [1] * (vocabulary - len(words))
    words += [f"t{i}" for i in range(len(words), vocabulary)]
    keys = [("general.architecture", TEXT, text("llama"))]
    for name, value in (("context_length", 4096), ("embedding_length", width),
                        ("block_count", blocks), ("feed_forward_length", inner),
                        ("attention.head_count", heads), ("attention.head_count_kv", kv_heads),
                        ("attention.key_length", dim), ("attention.value_length", dim),
                        ("rope.dimension_count", dim)):
        keys.append(("llama." + name, U32, struct.pack("<I", value)))
    keys += [
        ("llama.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)),
        ("tokenizer.ggml.model", TEXT, text("llama")),
        ("tokenizer.ggml.tokens", LIST, list_of(TEXT, [text(word) for word in words])),
        ("tokenizer.ggml.scores", LIST,
         list_of(F32, [struct.pack("<f", -i) for i in range(vocabulary)])),
        ("tokenizer.ggml.token_type", LIST, list_of(I32, [struct.pack("<i", k) for k in kinds])),
        ("tokenizer.ggml.bos_token_id", U32, struct.pack("<I", 1)),
        ("tokenizer.ggml.eos_token_id", U32, struct.pack("<I", 2)),
    ]

    def size(rows, columns, kind):
        return rows * columns // TYPES[kind][1] * TYPES[kind][2]

    rng = random.Random(7)
    # A prime number of random blocks, again and again: as good as random, and quickly made.
    some_blocks = {k: b"".join(random_block(rng, k) for _ in range(1021))
                   for k in TYPES if k != "f32"}
    with open(out, "wb") as file:
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
        for name, kind, value in keys:
            head += text(name) + struct.pack("<I", kind) + value
        at = 0
        for name, rows, columns, kind in tensors:
            dims = (columns,) if rows == 1 else (columns, rows)
            head += text(name) + struct.pack("<I", len(dims))
            head += b"".join(struct.pack("<Q", d) for d in dims)
            head += struct.pack("<IQ", TYPES[kind][0], at)
            at += (size(rows, columns, kind) + 31) // 32 * 32
        file.write(head + bytes(-len(head) % 32))
        for name, rows, columns, kind in tensors:
            left = size(rows, columns, kind)
            pattern = struct.pack("<f", 1.0) * columns if kind == "f32" else some_blocks[kind]
            padding = -left % 32
            while left > 0:
                file.write(pattern[:left])
                left -= min(left, len(pattern))
            file.write(bytes(padding))


main()
