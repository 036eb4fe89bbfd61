// As tokenizer_bench, by Hugging Face's own library. usage: node tokenizer_speed.mjs ENGINE FOLDER TEXT
import {createRequire} from "node:module";
import fs from "node:fs";
import path from "node:path";

const [engine, folder, file] = process.argv.slice(2);
const {Tokenizer} = createRequire(import.meta.url)(path.resolve(engine, "index.js"));
const tokenizer = Tokenizer.fromFile(path.resolve(folder, "tokenizer.json"));
const text = fs.readFileSync(file, "utf8");
const times = [];
let tokens = 0;
for (let run = 0; run < 5; run++) {
  const start = performance.now();
  tokens = (await tokenizer.encode(text, null, {addSpecialTokens: false})).getLength();
  times.push((performance.now() - start) / 1000);
}
times.sort((a, b) => a - b);
console.log(JSON.stringify({tokens, encode_mb_per_second: Buffer.byteLength(text) / 1e6 / times[2]}));
