// As answers.mjs, by llama.cpp and from a GGUF vocabulary. What it makes of drawn numbers is not asked.
// usage: node gguf_answers.mjs FOLDER VOCABULARY.gguf COUNT SEED
import {createRequire} from "node:module";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {begin, text} from "./strings.mjs";

const [folder, file, count, seed] = process.argv.slice(2);
const require = createRequire(pathToFileURL(path.resolve(folder, "llama") + "/"));
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")).href);
const llama = await getLlama({gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.disabled});
const model = await llama.loadModel({modelPath: path.resolve(folder, "gguf", file), vocabOnly: true, gpuLayers: 0});
begin(seed);
const lines = [];
for (let i = 0; i < Number(count); i++) {
  const string = text([]);
  const ids = Array.from(model._model.tokenize(string, true));
  lines.push(JSON.stringify({text: string, ids}));
}
process.stdout.write(lines.join("\n") + "\n", () => process.exit(0));
