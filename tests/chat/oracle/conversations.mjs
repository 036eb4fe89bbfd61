// Writes seeded conversations and what the npm engine makes of them, one JSON object a line:
//   {"name": template, "source": its text}          once before the lines of that template
//   {"variables": text of JSON, "text": what it printed, or null when it refused, "why": its words}
// usage: node conversations.mjs FOLDER COUNT SEED KIND NAME...    without names: every template
// KIND is "any", or "plain" for conversations without what the npm engine is known to do in another way than Jinja:
// contents that are no text, and the characters that JavaScript and Python do not both call white space.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, count, seed, kind, ...names] = process.argv.slice(2);
const { Template } = await import(pathToFileURL(path.resolve(folder, 'jinja.mjs')));

// A small generator whose whole state is the seed.
function generator(state) {
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(next() * n);
  return { below, chance: (p) => next() < p, pick: (list) => list[below(list.length)] };
}

const kPieces = [
  'Hello', 'world', 'What is the weather in Paris?', "it's", 'naïve', 'Straße', 'ǅ', 'İstanbul', 'ſ', 'ΑΣ', '日本語',
  'مرحبا', '🙂', '👩‍👩‍👧', 'e\u0301', ' ', '  ', '\n', '\n\n', '\t', '\r\n', '"', "'", '\\', '\\n', '/', '<', '>', '&', '0', '42', '-1.5',
  '{{ messages }}', '{% if true %}', '{%- endif -%}', '{# no #}', '}}', '%}', '{{', '{%', '| trim', '{% raw %}', '__class__',
  '<|im_start|>', '<|im_end|>', '<|im_start|>system\n', '<|eot_id|>', '<|start_header_id|>', '<|end_header_id|>',
  '<|begin_of_text|>', '<start_of_turn>', '<end_of_turn>', '<bos>', '<eos>', '<s>', '</s>', '[INST]', '[/INST]',
  '<｜User｜>', '<｜Assistant｜>', '<｜end▁of▁sentence｜>', '<|start|>', '<|message|>', '<|channel|>', '<|end|>', '<|return|>',
  '<think>', '</think>', '<think>\nhm\n</think>\n\n', '<tool_call>', '</tool_call>', '<tool_response>x</tool_response>',
  '{"a": [1, 2.5, null]}', 'null', 'None', 'True', '<|call|>', 'final', 'analysis', '```json\n{}\n```', '\u00a0', '\u3000',
  '\u2028', '\u200b', '\ufeff', '\x1c', '\x85', '\x7f', '\x00', '\b', '/think', '/no_think', '/system_override',
];

const plain = kind === 'plain';

function text(g, pieces_max = 8) {
  let out = '';
  for (let n = g.below(pieces_max + 1); n > 0; --n) {
    if (g.chance(0.2)) {
      // Any character that can stand in UTF-8, but for the many that are newer than Debian's Python.
      let c = g.chance(0.5) ? g.below(0x3000) : g.below(0x110000);
      if ((c >= 0xd800 && c < 0xe000) || (c >= 0x31350 && c < 0x323b0)) c = 0x1f600;
      out += String.fromCodePoint(c);
    } else {
      out += g.pick(kPieces);
    }
  }
  return plain ? out.replace(/[\ufeff\x1c-\x1f\x85]/g, '.') : out;
}

const word = (g) => g.pick(['location', 'unit', 'query', 'city', 'ids', 'größe', 'type', 'items', 'description', 'get', 'x"y']);

function json(g, depth = 0) {
  switch (g.below(depth > 2 ? 6 : 8)) {
    case 0: return null;
    case 1: return g.chance(0.5);
    case 2: return g.below(2000) - 1000;
    case 3: return g.pick([0.5, -2.25, 3.14159, 100.125]);
    case 4:
    case 5: return text(g, 3);
    case 6: return Array.from({ length: g.below(4) }, () => json(g, depth + 1));
    default: return object(g, depth);
  }
}

function object(g, depth = 0) {
  const out = {};
  for (let n = g.below(4); n > 0; --n) out[word(g)] = json(g, depth + 1);
  return out;
}

function tool(g) {
  const properties = {};
  for (let n = g.below(4); n > 0; --n) {
    const kind = g.pick(['string', 'integer', 'number', 'boolean', 'array', 'object', ['string', 'null']]);
    const property = { type: kind };
    if (g.chance(0.7)) property.description = text(g, 3);
    if (g.chance(0.2)) property.enum = ['a', text(g, 1), 'c'];
    if (g.chance(0.15)) property.default = json(g, 2);
    if (g.chance(0.1)) property.nullable = g.chance(0.5);
    if (kind === 'array') property.items = { type: g.pick(['string', 'number', 'integer']) };
    if (kind === 'object') property.properties = { inner: { type: 'string', description: 'x' } };
    properties[word(g)] = property;
  }
  const parameters = { type: 'object', properties };
  if (g.chance(0.7)) parameters.required = Object.keys(properties).slice(0, 1 + g.below(2));
  const made = { name: g.pick(['get_weather', 'search', 'run_code', 'größe']), description: text(g, 4), parameters };
  if (g.chance(0.15)) made.return = { type: 'string' };
  return { type: 'function', function: made };
}

function content(g) {
  return !plain && g.chance(0.06) ? [{ type: 'text', text: text(g) }, ...(g.chance(0.4) ? [{ type: 'text', text: text(g) }] : [])] : text(g);
}

function conversation(g) {
  const messages = [];
  if (g.chance(0.6)) messages.push({ role: g.chance(0.1) ? 'developer' : 'system', content: content(g) });
  const tools = g.chance(0.45) ? Array.from({ length: 1 + g.below(3) }, () => tool(g)) : null;
  for (let n = 1 + g.below(4); n > 0; --n) {
    if (!g.chance(0.04)) messages.push({ role: 'user', content: content(g) });
    if (n === 1 && g.chance(0.7)) break;
    if (g.chance(0.35)) {
      const calls = g.chance(0.75) ? 1 : 2;
      const message = { role: 'assistant', content: !plain && g.chance(0.5) ? null : g.chance(0.5) ? '' : text(g) };
      if (g.chance(0.3)) message.reasoning_content = text(g);
      if (g.chance(0.2)) message.thinking = text(g);
      message.tool_calls = Array.from({ length: calls }, (_, i) => {
        const call = { name: g.pick(['get_weather', 'search']), arguments: g.chance(0.6) ? object(g) : JSON.stringify(object(g)) };
        return { id: g.chance(0.5) ? 'call0000' + i : 'abcdefgh' + i, type: 'function', function: call };
      });
      messages.push(message);
      for (const call of message.tool_calls) {
        const answer = { role: 'tool', content: !plain && g.chance(0.1) ? object(g) : text(g) };
        if (g.chance(0.7)) answer.tool_call_id = call.id;
        if (g.chance(0.5)) answer.name = call.function.name;
        messages.push(answer);
      }
      if (g.chance(0.7)) messages.push({ role: 'assistant', content: text(g) });
    } else {
      const message = { role: 'assistant', content: content(g) };
      if (g.chance(0.2)) message.reasoning_content = text(g);
      if (g.chance(0.1)) message.thinking = text(g);
      messages.push(message);
    }
  }
  const variables = { messages };
  if (tools !== null || g.chance(0.1)) variables.tools = tools;
  if (g.chance(0.8)) variables.add_generation_prompt = g.chance(0.75);
  if (g.chance(0.5)) variables.enable_thinking = g.chance(0.5);
  if (g.chance(0.2)) variables.thinking = g.chance(0.5);
  if (g.chance(0.2)) variables.reasoning_effort = g.pick(['low', 'medium', 'high']);
  if (g.chance(0.1)) variables.builtin_tools = g.pick([['browser'], ['python'], ['browser', 'python']]);
  if (g.chance(0.1)) variables.date_string = '26 Jul 2024';
  if (g.chance(0.1)) variables.model_identity = text(g, 3);
  if (g.chance(0.1)) variables.tools_in_user_message = g.chance(0.5);
  if (g.chance(0.1)) variables.documents = [{ title: text(g, 2), text: text(g, 3), content: 'x' }];
  return variables;
}

// The engine asks for the time by itself: 2026-12-01 00:30:05 UTC, as the test tells ours.
process.env.TZ = 'UTC';
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.UTC(2026, 11, 1, 0, 30, 5)] : given));
  }
};

function templates() {
  const found = [];
  const spelled = (token) => (token && typeof token === 'object' ? token.content : token) ?? '';
  for (const file of fs.readdirSync(path.join(folder, 'configs'))) {
    const config = JSON.parse(fs.readFileSync(path.join(folder, 'configs', file), 'utf8'));
    if (typeof config.chat_template !== 'string') continue;
    found.push({ name: path.basename(file, '.json'), source: config.chat_template, bos: spelled(config.bos_token), eos: spelled(config.eos_token) });
  }
  for (const file of fs.readdirSync(path.join(folder, 'templates')).sort()) {
    found.push({ name: path.basename(file, '.jinja'), source: fs.readFileSync(path.join(folder, 'templates', file), 'utf8'), bos: '<BOS>', eos: '<EOS>' });
  }
  return names.length === 0 ? found : found.filter((one) => names.includes(one.name));
}

// A pipe takes no more than what is read, so write synchronously, many lines at a time.
let waiting = [];
function flush() {
  let bytes = Buffer.from(waiting.join(''));
  waiting = [];
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(fs.writeSync(1, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}
function put(line) {
  waiting.push(JSON.stringify(line) + '\n');
  if (waiting.length > 200) flush();
}

for (const one of templates()) {
  put({ name: one.name, source: one.source, bos: one.bos, eos: one.eos });
  let compiled = null;
  let why = '';
  try {
    compiled = new Template(one.source);
  } catch (error) {
    why = String(error.message);
  }
  for (let i = 0; i < Number(count); ++i) {
    const variables = JSON.stringify(conversation(generator(Number(seed) * 1000003 + i)));
    const line = { variables, text: null, why };
    try {
      if (compiled !== null) {
        line.text = compiled.render({
          ...JSON.parse(variables),
          bos_token: one.bos,
          eos_token: one.eos,
        });
      }
    } catch (error) {
      line.why = String(error.message);
    }
    put(line);
  }
}
flush();
