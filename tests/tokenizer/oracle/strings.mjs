// Seeded strings to make tokens of: text of many scripts, code, white space, marks, spellings of special tokens, and any
// character that there is.

// A small generator whose whole state is the seed.
let state = 0;
export const begin = (seed) => { state = Number(seed) | 0; };
const next = () => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
export const below = (n) => Math.floor(next() * n);
const pick = (list) => list[below(list.length)];

const kPieces = [
  "Hello", " world", "The quick brown fox", " don't", " DON'T", "I'LL", "we'Ve", "'s", "'ſ", "’s", "naïve", "Straße", "ǅ", "İstanbul",
  "ſ", "ΑΣΣ", "日本語のテキスト", "汉字", "한국어", "हिन्दी", "ไทย", "עברית", "مرحبا بالعالم", "🙂", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "e\u0301", "é", "Å",
  "\u212b", "ﬁ", "①", "½", "Ⅷ", "٣٤٥", "१२३", "𝟘𝟙", "0", "42", "1234567890", "3.14159", "-1e-5", "0xDEADBEEF", " ", "  ", "   ",
  "     ", "\n", "\n\n", "\r\n", "\r", "\t", "\t\t", " \n ", "\n  \n", "\u00a0", "\u3000", "\u2003", "\u2028", "\u180e", "\u200b", "\u200d",
  "\ufeff", "\u0000", "\u0085", "\x7f", "\ufffd", "\u0300", "\u0315\u0300", "가", "\u1100\u1161\u11a8", "ကျွန်ုပ်", "!", "?!", "...", "—", "'", '"', "`",
  "{}", "[]()", "<div class=\"a\">", "</p>", "/* x */", "// y", "#include <stdio.h>", "int main(void) {", "return x+y;", "a_b-c.d", "snake_case",
  "camelCaseWord", "HTTPServer", "https://example.org/?q=1&r=2", "user@example.org", "$100", "50%", "C++20", "\\n", "\\", "|", "~", "^", "▁", "▁▁", "Ġ",
  "Ċ", "<0x41>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|eot_id|>", "<bos>", "<eos>",
  "<start_of_turn>", "<｜User｜>", "<｜fim▁hole｜>", "<|start|>", "<|return|>", "<think>", "<tool_call>", "<unused0>", "<|reserved_special_token_3|>",
];

// A string's bytes with some lost, some drawn, and halves of surrogate pairs: hardly ever UTF-8.
export function broken(string) {
  const bytes = [...Buffer.from(string)];
  for (let n = 1 + below(6); n > 0; --n) {
    const at = below(bytes.length + 1);
    const kind = below(3);
    if (kind === 0) bytes.splice(at, 1 + below(3));
    else if (kind === 1) bytes.splice(at, 0, below(256));
    else bytes.splice(at, 0, 0xed, 0xa0 + below(32), 0x80 + below(64));
  }
  return Buffer.from(bytes);
}

// `special` are spellings of a vocabulary, to be strewn in.
export function text(special) {
  const kind = below(20);
  if (kind === 0) return pick(kPieces).repeat(1 + below(300));  // One very long word or run.
  if (kind === 1) {
    let word = "";
    for (let n = below(2000); n > 0; --n) word += String.fromCharCode(97 + below(26));
    return word;
  }
  let out = "";
  for (let n = below(12); n > 0; --n) {
    if (next() < 0.25) {
      let c = pick([0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]);
      c = below(c);
      if (c >= 0xd800 && c < 0xe000) c = 0x1f600;
      out += String.fromCodePoint(c);
    } else if (special.length > 0 && next() < 0.05) {
      out += pick(special);
    } else {
      out += pick(kPieces);
    }
    if (next() < 0.3) out += " ";
  }
  return out;
}
