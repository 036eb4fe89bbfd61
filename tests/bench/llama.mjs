// Measures llama.cpp by node-llama-cpp's prebuilt CPU library as `shoal-run bench` measures us; its
// last line is what `--vs` reads.
// usage: node llama.mjs MODEL.gguf THREADS PROMPT_TOKENS DECODE_TOKENS
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const folder = process.env.SHOAL_RIVAL ?? ".";  // Where npm installed it.
const found = createRequire(pathToFileURL(folder + "/")).resolve("node-llama-cpp");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(found).href);

const [modelPath, ...numbers] = process.argv.slice(2);
const [threads, prompt, decode] = numbers.map(Number);
const llama = await getLlama({
  gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error, maxThreads: threads,
});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const context = await model.createContext({
  contextSize: prompt + decode + 16, batchSize: 64, threads: {ideal: threads, min: threads}, sequences: 1,
});
const sequence = context.getSequence();
const tokens = Array.from({length: prompt}, (_, i) => (i * 7919) % 32000);
let prefillBest = 0;
let decodeBest = 0;
for (let round = 0; round < 2; round++) {  // The first one warms up.
  await sequence.clearHistory();
  const begin = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(tokens);
  const middle = performance.now();
  for (let i = 0; i < decode; i++) await sequence.evaluateWithoutGeneratingNewTokens([tokens[i % prompt]]);
  const end = performance.now();
  prefillBest = Math.max(prefillBest, (prompt / (middle - begin)) * 1000);
  decodeBest = Math.max(decodeBest, (decode / (end - middle)) * 1000);
}
console.log(JSON.stringify({prefill_tokens_per_second: prefillBest, decode_tokens_per_second: decodeBest}));
process.exit(0);
