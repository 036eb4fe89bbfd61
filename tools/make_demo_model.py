#!/usr/bin/python3
"""Makes the demo model: a small Llama that speaks in the manner of the King James Bible.

It has four acts, each of which reads only what the one before left on disk:

  text       the Bible out of Debian's bible-kjv, made into running prose; one chapter in forty is held out
  train      a byte-level BPE tokenizer, then the network, for as many minutes as it is given
  write      the GGUF file, matrices in Q8_0
  reference  the GGUF file read back and computed in float64: the numbers that other code must meet

Needs Debian packages only: python3-torch python3-numpy bible-kjv bible-kjv-text, and
libopenblas0-pthread, without which matrix products are twenty times slower.

    nice -n 19 /usr/bin/python3 tools/make_demo_model.py all --minutes 24 --threads 2

Training stops by the clock, so a second run gives a model as good, not the same bytes. Text,
tokenizer and the split are the same each time. A training that was cut short goes on from its last
checkpoint.
"""

import argparse
import collections
import ctypes
import json
import math
import os
import re
import struct
import subprocess
import sys
import time

# ---------------------------------------------------------------------------------------------
# Choices

SEED = 1611
VOCABULARY = 2048
BOS, EOS = 0, 1
SPECIALS = ["<|bos|>", "<|eos|>"]

HIDDEN = 192
INTERMEDIATE = 384
BLOCKS = 6
HEADS = 6
KV_HEADS = 2
HEAD_DIM = HIDDEN // HEADS
CONTEXT = 512
EPSILON = 1e-5
ROPE_BASE = 10000.0

# Q8_0 holds rows in blocks of 32.
assert all(n % 32 == 0 for n in (HIDDEN, INTERMEDIATE, HEAD_DIM * KV_HEADS))

BATCH_TOKENS = 2048
WINDOW = 256          # Of the held-out text.
LENGTHS = [128, 256, 128, 256, 128, 256, 128, CONTEXT]  # Of a step's sequences, in turn: short ones are cheaper.
STRETCH = 64          # Of queries that attention takes at a time.
LEARNING_RATE = 3e-3  # At its highest; it falls to a twentieth along a cosine.
WEIGHT_DECAY = 0.1
WARMUP_STEPS = 100
CHECKPOINT_SECONDS = 60

PROMPTS = ["In the beginning", "And the king said unto", "Blessed are"]
REFERENCE_TOKENS = 64

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "models", "demo")
WORK = os.path.join(ROOT, "build", "demo_model")  # Not in the repository.
GGUF_PATH = os.path.join(OUT, "shoal-demo-q8_0.gguf")
HELDOUT_PATH = os.path.join(OUT, "heldout.txt")
REFERENCE_PATH = os.path.join(OUT, "reference.json")


def at_work(name):
    return os.path.join(WORK, name)


# ---------------------------------------------------------------------------------------------
# Text

VERSE = re.compile(r"^([0-9]?[A-Za-z]+)([0-9]+):([0-9]+) (.*)$")
PARAGRAPH_CHARS_MIN = 400
HELD_OUT_EVERY = 40


def read_chapters():
    """The whole Bible as a list of chapters, each a list of paragraphs.

    `bible -f` prints a verse a line, "Ge1:1 In the beginning ...". It marks no paragraphs, so one
    ends where a verse ends a sentence and at least PARAGRAPH_CHARS_MIN characters have gathered.
    """
    printed = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    chapters, where = [], None
    for line in printed.splitlines():
        match = VERSE.match(line)
        if not match:
            raise SystemExit("not a verse: " + repr(line))
        book, chapter, _, verse = match.groups()
        if (book, chapter) != where:
            where = (book, chapter)
            chapters.append([""])
        paragraphs = chapters[-1]
        if len(paragraphs[-1]) >= PARAGRAPH_CHARS_MIN and paragraphs[-1][-1] in ".?!":
            paragraphs.append("")
        paragraphs[-1] = (paragraphs[-1] + " " + " ".join(verse.split())).strip()
    return chapters


def make_text():
    """Writes train.json, a list of chapters, and heldout.txt. A paragraph is a line."""
    chapters = ["\n".join(paragraphs) for paragraphs in read_chapters()]
    assert len(chapters) == 1189 and all(c.isascii() for c in chapters)
    held_out = chapters[HELD_OUT_EVERY - 1::HELD_OUT_EVERY]
    kept = [c for i, c in enumerate(chapters) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
    with open(at_work("train.json"), "w") as f:
        json.dump(kept, f)
    with open(HELDOUT_PATH, "w", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(held_out) + "\n")
    print(f"text: {len(kept)} chapters, {sum(map(len, kept))} characters to train on;"
          f" {len(held_out)} chapters, {sum(map(len, held_out))} characters held out")


# ---------------------------------------------------------------------------------------------
# Tokenizer: byte-level BPE as in GPT-2

# GPT-2's pattern with \p{L} and \p{N} narrowed to ASCII. The same pieces come out as long as the
# text is ASCII, which encode() insists on.
PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_to_unicode():
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in printable}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + len(table) - len(printable))
    return table


class Tokenizer:
    def __init__(self, tokens, merges):
        self.tokens = tokens  # id -> text, in the byte-to-unicode alphabet
        self.merges = merges  # pairs of texts, the first to be merged first
        self.ids = {text: i for i, text in enumerate(tokens)}
        self.ranks = {tuple(pair): i for i, pair in enumerate(merges)}
        self.to_unicode = byte_to_unicode()
        self.to_byte = {u: b for b, u in self.to_unicode.items()}
        self.cache = {}

    def encode_piece(self, piece):
        parts = [self.to_unicode[b] for b in piece.encode("utf-8")]
        while len(parts) > 1:
            ranked = [(self.ranks.get(pair, math.inf), i) for i, pair in enumerate(zip(parts, parts[1:]))]
            rank, i = min(ranked)
            if rank == math.inf:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.ids[p] for p in parts]

    def encode(self, text):
        assert text.isascii()
        out = []
        for piece in PIECES.findall(text):
            if piece not in self.cache:
                self.cache[piece] = self.encode_piece(piece)
            out += self.cache[piece]
        return out

    def decode(self, ids):
        spelled = "".join(self.tokens[i] for i in ids if i >= len(SPECIALS))
        return bytes(self.to_byte[u] for u in spelled).decode("utf-8", errors="replace")


def train_tokenizer(texts):
    """Merges the commonest pair, again and again. Ties go to the pair that sorts first."""
    to_unicode = byte_to_unicode()
    counts = collections.Counter(p for text in texts for p in PIECES.findall(text))
    words = [([to_unicode[b] for b in piece.encode()], n) for piece, n in sorted(counts.items())]
    pairs, holders = collections.Counter(), collections.defaultdict(set)
    for w, (parts, n) in enumerate(words):
        for pair in zip(parts, parts[1:]):
            pairs[pair] += n
            holders[pair].add(w)

    tokens = SPECIALS + [to_unicode[b] for b in range(256)]
    merges = []
    while len(tokens) < VOCABULARY:
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        tokens.append(best[0] + best[1])
        for w in holders.pop(best):
            parts, n = words[w]
            for pair in zip(parts, parts[1:]):
                pairs[pair] -= n
            merged, i = [], 0
            while i < len(parts):
                step = 2 if tuple(parts[i:i + 2]) == best else 1
                merged.append("".join(parts[i:i + step]))
                i += step
            words[w] = (merged, n)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += n
                holders[pair].add(w)
        del pairs[best]
    assert len(set(tokens)) == VOCABULARY
    return Tokenizer(tokens, merges)


def load_tokenizer():
    with open(at_work("tokenizer.json")) as f:
        stored = json.load(f)
    return Tokenizer(stored["tokens"], stored["merges"])


# ---------------------------------------------------------------------------------------------
# Network


def build_network(torch):
    """The Llama architecture with a tied head. Rotary pairs lie side by side, (2i, 2i+1), which is
    how GGUF wants the rows of Q and K for this architecture; so nothing is permuted on writing."""
    nn, F = torch.nn, torch.nn.functional
    angles = torch.outer(torch.arange(CONTEXT).double(),
                         ROPE_BASE ** (-torch.arange(0, HEAD_DIM, 2).double() / HEAD_DIM))
    turns = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
    mask = torch.full((CONTEXT, CONTEXT), -math.inf).triu(1)

    def rotate(x):  # [batch, head, position, HEAD_DIM]
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], HEAD_DIM // 2, 2))
        return torch.view_as_real(pairs * turns[:x.shape[2]]).flatten(-2)

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(HIDDEN))

        def forward(self, x):
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.weight

    def linear(rows_in, rows_out, std):
        layer = nn.Linear(rows_in, rows_out, bias=False)
        nn.init.normal_(layer.weight, std=std)
        return layer

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            std, into_residual = HIDDEN ** -0.5 / 2, HIDDEN ** -0.5 / 2 / math.sqrt(2 * BLOCKS)
            self.attn_norm = RmsNorm()
            self.attn_q = linear(HIDDEN, HIDDEN, std)
            self.attn_k = linear(HIDDEN, KV_HEADS * HEAD_DIM, std)
            self.attn_v = linear(HIDDEN, KV_HEADS * HEAD_DIM, std)
            self.attn_output = linear(HIDDEN, HIDDEN, into_residual)
            self.ffn_norm = RmsNorm()
            self.ffn_gate = linear(HIDDEN, INTERMEDIATE, std)
            self.ffn_up = linear(HIDDEN, INTERMEDIATE, std)
            self.ffn_down = linear(INTERMEDIATE, HIDDEN, into_residual)

        def attend(self, x):
            batch, length, _ = x.shape
            split = lambda y, heads: y.view(batch, length, heads, HEAD_DIM).transpose(1, 2)
            q = rotate(split(self.attn_q(x), HEADS)) * HEAD_DIM ** -0.5
            k = rotate(split(self.attn_k(x), KV_HEADS))
            v = split(self.attn_v(x), KV_HEADS)
            # Query heads 0..2 share the first key head, 3..5 the second. The queries of a group lie
            # one below the other, so that no key is copied; and they are taken a stretch at a time,
            # each with the keys that it may see, so that half the table is never computed.
            group = HEADS // KV_HEADS
            q = q.reshape(batch, KV_HEADS, group, length, HEAD_DIM)
            mixed = []
            for begin in range(0, length, STRETCH):
                end = min(begin + STRETCH, length)
                rows = q[:, :, :, begin:end].reshape(batch, KV_HEADS, -1, HEAD_DIM)
                scores = (rows @ k[:, :, :end].transpose(-1, -2)).view(batch, KV_HEADS, group, end - begin, end)
                weights = F.softmax(scores + mask[begin:end, :end], dim=-1)
                rows = weights.view(batch, KV_HEADS, -1, end) @ v[:, :, :end]
                mixed.append(rows.view(batch, HEADS, end - begin, HEAD_DIM))
            mixed = torch.cat(mixed, dim=2).transpose(1, 2).reshape(batch, length, HIDDEN)
            return self.attn_output(mixed)

        def forward(self, x):
            x = x + self.attend(self.attn_norm(x))
            y = self.ffn_norm(x)
            return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.token_embd = nn.Embedding(VOCABULARY, HIDDEN)
            nn.init.normal_(self.token_embd.weight, std=0.02)
            self.blk = nn.ModuleList(Block() for _ in range(BLOCKS))
            self.output_norm = RmsNorm()

        def forward(self, ids):
            x = self.token_embd(ids)
            for block in self.blk:
                x = block(x)
            return F.linear(self.output_norm(x), self.token_embd.weight)

    return Network()


def heldout_windows(tokenizer):
    """The held-out text as windows of WINDOW tokens: bos, then WINDOW-1 tokens that follow on from
    the window before. What does not fill a window at the end is left out."""
    with open(HELDOUT_PATH, encoding="utf-8") as f:
        ids = tokenizer.encode(f.read())
    step = WINDOW - 1
    return [[BOS] + ids[i:i + step] for i in range(0, len(ids) - step + 1, step)], len(ids)


def keep_freed_memory():
    """Large tensors come and go in every step. Without this the C library hands each back to the
    kernel, which has to clear its pages anew: a seventh of the time."""
    M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def train(minutes, threads):
    keep_freed_memory()
    # Both libraries read these once, when they start.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    import numpy as np
    import torch
    F = torch.nn.functional
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)  # The backward pass of softmax makes many, and each is slow.

    with open(at_work("train.json")) as f:
        chapters = json.load(f)
    if not os.path.exists(at_work("tokenizer.json")):
        tokenizer = train_tokenizer(chapters)
        with open(at_work("tokenizer.json"), "w") as f:
            json.dump({"tokens": tokenizer.tokens, "merges": tokenizer.merges}, f)
    tokenizer = load_tokenizer()

    # One long stream. A window starts anywhere in it or, as often, where a paragraph starts, and
    # gets a bos of its own: so the model knows to start afresh after a bos.
    stream, starts = [], []
    for chapter in chapters:
        stream.append(BOS)
        for i, paragraph in enumerate(chapter.split("\n")):
            starts.append(len(stream) + (i > 0))
            stream += tokenizer.encode(("\n" if i else "") + paragraph)
        stream.append(EOS)
    stream, starts = np.array(stream), np.array(starts)
    starts = starts[starts < len(stream) - CONTEXT]
    windows = torch.tensor(heldout_windows(tokenizer)[0])

    network = build_network(torch)
    matrices = [p for p in network.parameters() if p.dim() == 2]
    norms = [p for p in network.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY},
                                   {"params": norms, "weight_decay": 0.0}],
                                  lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-8)
    print(f"train: {sum(p.numel() for p in network.parameters())} parameters, {len(stream)} tokens to train on,"
          f" {len(windows)} windows held out", flush=True)

    step, tokens_seen, seconds, log = 0, 0, 0.0, []
    if os.path.exists(at_work("checkpoint.pt")):
        saved = torch.load(at_work("checkpoint.pt"))
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        step, tokens_seen, seconds, log = (saved[k] for k in ("step", "tokens_seen", "seconds", "log"))
        print(f"train: going on from step {step}", flush=True)
    random = np.random.default_rng([SEED, step])

    def batch(length):
        count = BATCH_TOKENS // length
        anywhere = random.integers(0, len(stream) - CONTEXT, count)
        first = np.where(random.random(count) < 0.5, anywhere, random.choice(starts, count))
        rows = np.stack([np.concatenate([[BOS], stream[f:f + length]]) for f in first])
        # A window that happens to start at a bos shall not have two.
        rows[:, 1][rows[:, 1] == BOS] = stream[1]
        return torch.from_numpy(rows)

    def loss_of(rows):
        logits = network(rows[:, :-1])
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), rows[:, 1:].reshape(-1))

    def heldout_loss():
        network.eval()
        with torch.no_grad():
            return sum(loss_of(w).item() * len(w) for w in windows.split(16)) / len(windows)

    running, before, checkpoint_due = [], time.monotonic(), seconds + CHECKPOINT_SECONDS
    while True:
        done = min(1.0, seconds / (60 * minutes))
        rate = LEARNING_RATE * min(1.0, (step + 1) / WARMUP_STEPS) * (0.525 + 0.475 * math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = rate
        rows = batch(LENGTHS[step % len(LENGTHS)])
        loss = loss_of(rows)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        running.append(loss.item())
        step += 1
        tokens_seen += BATCH_TOKENS
        now = time.monotonic()
        seconds, before = seconds + now - before, now

        if seconds >= checkpoint_due or done >= 1.0:
            train_loss, running = sum(running) / len(running), []
            log.append({"step": step, "tokens": tokens_seen, "seconds": round(seconds),
                        "train_loss": train_loss, "heldout_loss": heldout_loss()})
            print(json.dumps(log[-1]), flush=True)
            torch.save({"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
                        "tokens_seen": tokens_seen, "seconds": seconds, "log": log}, at_work("checkpoint.tmp"))
            os.replace(at_work("checkpoint.tmp"), at_work("checkpoint.pt"))
            checkpoint_due = seconds + CHECKPOINT_SECONDS
        if done >= 1.0:
            break


# ---------------------------------------------------------------------------------------------
# GGUF, written

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5  # Kinds of metadata values.
TENSOR_F32, TENSOR_Q8_0 = 0, 8
ALIGNMENT = 32
Q8_0_BLOCK = 32


def quantise_q8_0(matrix):
    """Blocks of 32 along a row: an fp16 scale and 32 signed bytes. Divides by the scale as it is
    stored, after rounding, which leaves a little less error than dividing by the exact one."""
    import numpy as np
    blocks = matrix.astype(np.float64).reshape(-1, Q8_0_BLOCK)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    divisors = np.where(scales == 0, 1, scales).astype(np.float64)
    packed = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", Q8_0_BLOCK)])
    packed["d"] = scales[:, 0]
    packed["q"] = np.clip(np.rint(blocks / divisors), -127, 127)
    return packed.tobytes()


def pack_string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        element, values = value
        return struct.pack("<IQ", element, len(values)) + b"".join(pack_value(element, v) for v in values)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def load_trained():
    """The weights by their GGUF names, as numpy arrays in float32, and the training log."""
    import torch
    saved = torch.load(at_work("checkpoint.pt"))
    return {name: tensor.numpy() for name, tensor in saved["network"].items()}, saved["log"]


def write_gguf():
    weights, _ = load_trained()
    tokenizer = load_tokenizer()
    metadata = [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "Shoal demo"),
        ("general.description", STRING, "Trained on the King James Bible, to have something to run"),
        ("general.file_type", U32, 7),  # Mostly Q8_0.
        ("general.quantization_version", U32, 2),
        ("llama.vocab_size", U32, VOCABULARY),
        ("llama.block_count", U32, BLOCKS),
        ("llama.context_length", U32, CONTEXT),
        ("llama.embedding_length", U32, HIDDEN),
        ("llama.feed_forward_length", U32, INTERMEDIATE),
        ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.head_count_kv", U32, KV_HEADS),
        ("llama.attention.layer_norm_rms_epsilon", F32, EPSILON),
        ("llama.rope.dimension_count", U32, HEAD_DIM),
        ("llama.rope.freq_base", F32, ROPE_BASE),
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "gpt-2"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, tokenizer.tokens)),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [3 if i < len(SPECIALS) else 1 for i in range(VOCABULARY)])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, [" ".join(pair) for pair in tokenizer.merges])),
        ("tokenizer.ggml.bos_token_id", U32, BOS),
        ("tokenizer.ggml.eos_token_id", U32, EOS),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
    ]
    header = b"GGUF" + struct.pack("<Iqq", 3, len(weights), len(metadata))
    for key, kind, value in metadata:
        header += pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)
    data = b""
    for name, array in weights.items():
        kind, raw = (TENSOR_Q8_0, quantise_q8_0(array)) if array.ndim == 2 else (TENSOR_F32, array.tobytes())
        header += pack_string(name) + struct.pack("<I", array.ndim)
        header += struct.pack(f"<{array.ndim}q", *reversed(array.shape))  # The dimension that runs fastest comes first.
        header += struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % ALIGNMENT)
    header += bytes(-len(header) % ALIGNMENT)
    with open(GGUF_PATH, "wb") as f:
        f.write(header + data)
    size = os.path.getsize(GGUF_PATH)
    assert size <= 3_000_000
    print(f"write: {GGUF_PATH}, {size} bytes")


# ---------------------------------------------------------------------------------------------
# GGUF, read back, and the model in float64. Shares nothing with the writer or with torch: what it
# computes is what the file says.


class Reader:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.at = 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element, count = self.take("IQ")
            return [self.value(element) for _ in range(count)]
        return self.take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])


def read_gguf(path):
    """Metadata, and tensors as float64 with the dimension that runs fastest last."""
    import numpy as np
    reader = Reader(path)
    assert reader.data[:4] == b"GGUF"
    reader.at = 4
    version, tensor_count, key_count = reader.take("Iqq")
    assert version == 3
    metadata = {}
    for _ in range(key_count):
        key = reader.string()
        metadata[key] = reader.value(reader.take("I"))
    infos = []
    for _ in range(tensor_count):
        name = reader.string()
        shape = [reader.take("q") for _ in range(reader.take("I"))][::-1]
        infos.append((name, shape, *reader.take("IQ")))
    begin = -(-reader.at // 32) * 32
    tensors = {}
    for name, shape, kind, offset in infos:
        count, offset = math.prod(shape), begin + offset
        if kind == 0:
            flat = np.frombuffer(reader.data, "<f4", count, offset).astype(np.float64)
        else:
            assert kind == 8
            blocks = np.frombuffer(reader.data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, offset)
            flat = blocks["d"].astype(np.float64)[:, None] * blocks["q"]
        tensors[name] = flat.reshape(shape)
    return metadata, tensors


class Float64Model:
    """The Llama architecture, written as plainly as it can be."""

    def __init__(self, metadata, tensors):
        self.tensors = tensors
        key = lambda name: metadata["llama." + name]
        self.blocks, self.hidden = key("block_count"), key("embedding_length")
        self.heads, self.kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        self.epsilon, self.rope_base = key("attention.layer_norm_rms_epsilon"), key("rope.freq_base")
        self.context, self.rotated = key("context_length"), key("rope.dimension_count")
        self.bos = metadata["tokenizer.ggml.bos_token_id"]
        merges = [tuple(m.split(" ")) for m in metadata["tokenizer.ggml.merges"]]
        self.tokenizer = Tokenizer(metadata["tokenizer.ggml.tokens"], merges)

    def norm(self, x, weight):
        import numpy as np
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon) * weight

    def rotate(self, x):  # [position, head, dimension]; pairs (2i, 2i+1)
        import numpy as np
        angles = np.outer(np.arange(len(x)), self.rope_base ** (-np.arange(0, self.rotated, 2) / self.rotated))
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        even, odd = x[..., 0::2], x[..., 1::2]
        out = np.empty_like(x)
        out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return out

    def logits(self, ids):
        """One row of logits for each of `ids`."""
        import numpy as np
        assert len(ids) <= self.context
        length, head_dim = len(ids), self.hidden // self.heads
        x = self.tensors["token_embd.weight"][ids]
        hidden_from = np.triu(np.ones((length, length), dtype=bool), 1)
        for b in range(self.blocks):
            w = lambda name: self.tensors[f"blk.{b}.{name}.weight"]
            y = self.norm(x, w("attn_norm"))
            q = self.rotate((y @ w("attn_q").T).reshape(length, self.heads, head_dim))
            k = self.rotate((y @ w("attn_k").T).reshape(length, self.kv_heads, head_dim))
            v = (y @ w("attn_v").T).reshape(length, self.kv_heads, head_dim)
            mixed = np.empty_like(q)
            for h in range(self.heads):
                g = h // (self.heads // self.kv_heads)
                scores = q[:, h] @ k[:, g].T / math.sqrt(head_dim)
                scores[hidden_from] = -np.inf
                scores = np.exp(scores - scores.max(axis=1, keepdims=True))
                mixed[:, h] = scores / scores.sum(axis=1, keepdims=True) @ v[:, g]
            x = x + mixed.reshape(length, self.hidden) @ w("attn_output").T
            y = self.norm(x, w("ffn_norm"))
            gate = y @ w("ffn_gate").T
            x = x + gate / (1 + np.exp(-gate)) * (y @ w("ffn_up").T) @ w("ffn_down").T
        return self.norm(x, self.tensors["output_norm.weight"]) @ self.tensors["token_embd.weight"].T

    def window_nll(self, window):
        """The summed negative log-likelihood, in nats, of all but the first token of a window."""
        import numpy as np
        logits = self.logits(window)[:-1]
        top = logits.max(axis=1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        return float((total - logits[np.arange(len(logits)), window[1:]]).sum())

    def generate(self, ids, count, choose):
        ids = list(ids)
        for _ in range(count):
            ids.append(int(choose(self.logits(ids)[-1])))
        return ids


def make_reference():
    import numpy as np
    metadata, tensors = read_gguf(GGUF_PATH)
    model = Float64Model(metadata, tensors)
    windows, token_count = heldout_windows(model.tokenizer)

    prompts = []
    for prompt in PROMPTS:
        ids = [model.bos] + model.tokenizer.encode(prompt)
        margins = []

        def greedy(logits):
            second, first = np.sort(logits)[-2:]
            margins.append(first - second)
            return np.argmax(logits)

        greedy_ids = model.generate(ids, REFERENCE_TOKENS, greedy)[len(ids):]
        prompts.append({"prompt": prompt, "prompt_ids": ids, "greedy_ids": greedy_ids,
                        "greedy_text": model.tokenizer.decode(greedy_ids),
                        "greedy_margins": [round(m, 6) for m in margins],
                        "last_logits": [round(x, 7) for x in model.logits(ids)[-1].tolist()]})
        print(prompt + "|" + prompts[-1]["greedy_text"], flush=True)

    def perplexity_of(some_model):
        nlls = [some_model.window_nll(w) for w in windows]
        return nlls, math.exp(sum(nlls) / (len(windows) * (WINDOW - 1)))

    nlls, perplexity = perplexity_of(model)
    trained, log = load_trained()
    _, perplexity_f32 = perplexity_of(Float64Model(metadata, {k: a.astype(np.float64) for k, a in trained.items()}))
    print(f"reference: perplexity {perplexity:.4f}, before quantisation {perplexity_f32:.4f}; last of training: {log[-1]}")

    stored = {
        "about": "Computed in float64 by tools/make_demo_model.py from the GGUF file of this folder. prompt_ids begin"
                 " with bos. greedy_ids are the 64 tokens after the prompt, an eos among them not being an end;"
                 " greedy_margins tell by how much each had the highest logit. last_logits follow the whole prompt.",
        "prompts": prompts,
        "heldout": {
            "about": "heldout.txt as one text, without special tokens, is heldout_tokens tokens long. Window n is bos and"
                     " then tokens [n*255, n*255+255); the tokens that do not fill a last window are left out. The bos is"
                     " not scored, the 255 others are. window_nll is each window's sum, in nats; perplexity is"
                     " exp(sum of window_nll / scored_tokens).",
            "heldout_tokens": token_count, "window_tokens": WINDOW, "windows": len(windows),
            "scored_tokens": len(windows) * (WINDOW - 1), "perplexity": perplexity,
            "first_window_ids": windows[0], "window_nll": [round(x, 6) for x in nlls],
        },
    }
    text = json.dumps(stored, indent=1, ensure_ascii=False)
    text = re.sub(r"\[[-0-9.e,\s]*\]", lambda m: "".join(m.group().split()), text)  # A list of numbers on one line.
    with open(REFERENCE_PATH, "w", encoding="utf-8", newline="\n") as f:
        f.write(text + "\n")


def sample(temperature, count):
    """Prints text, to be looked at."""
    import numpy as np
    model = Float64Model(*read_gguf(GGUF_PATH))
    random = np.random.default_rng(SEED)

    def choose(logits):
        odds = np.exp((logits - logits.max()) / temperature)
        return random.choice(len(odds), p=odds / odds.sum())

    for prompt in PROMPTS:
        ids = [model.bos] + model.tokenizer.encode(prompt)
        print("---", model.tokenizer.decode(model.generate(ids, count, choose)), sep="\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("act", choices=["text", "train", "write", "reference", "sample", "all"])
    parser.add_argument("--minutes", type=float, default=24, help="how long to train")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    os.makedirs(OUT, exist_ok=True)
    chosen = lambda act: options.act in (act, "all")
    if chosen("text"):
        make_text()
    if chosen("train"):
        train(options.minutes, options.threads)
    if chosen("write"):
        write_gguf()
    if chosen("reference"):
        make_reference()
    if options.act == "sample":
        sample(temperature=0.8, count=160)


if __name__ == "__main__":
    main()
