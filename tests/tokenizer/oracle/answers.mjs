// Writes seeded strings and what Hugging Face's library makes of them, one JSON object a line:
//   {"text": string, "ids": [numbers], "decoded": string}    special tokens are found, and shown
//   {"text": string, "bytes": [numbers], …}                  bytes that are no UTF-8; text: with U+FFFD for such, as WHATWG says
//   {"ids": [numbers], "decoded": string}                    numbers drawn by chance
// usage: node answers.mjs FOLDER MODEL COUNT SEED
import {createRequire} from "node:module";
import path from "node:path";
import {begin, below, broken, text} from "./strings.mjs";

const [folder, model, count, seed] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const {Tokenizer} = require(path.resolve(folder, "engine", "index.js"));
const tokenizer = Tokenizer.fromFile(path.resolve(folder, model, "tokenizer.json"));
const vocabulary = tokenizer.getVocabSize(true);
const special = tokenizer.getAddedTokensDecoder ? Object.values(tokenizer.getAddedTokensDecoder() ?? {}).map((t) => t.content ?? "") : [];

begin(seed);
const lines = [];
for (let i = 0; i < Number(count); i++) {
  let string = text(special);
  const bytes = i % 5 === 0 ? broken(string) : undefined;
  if (bytes) string = bytes.toString("utf8");
  const ids = [...(await tokenizer.encode(string, null, {addSpecialTokens: false})).getIds()];
  lines.push(JSON.stringify({text: string, bytes: bytes && [...bytes], ids, decoded: await tokenizer.decode(ids, false)}));
  if (i % 4 === 0) {
    const drawn = Array.from({length: below(20)}, () => below(vocabulary));
    lines.push(JSON.stringify({ids: drawn, decoded: await tokenizer.decode(drawn, false)}));
  }
}
process.stdout.write(lines.join("\n") + "\n");
