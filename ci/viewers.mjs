// Compares the files for Firefox Profiler and speedscope of one recording with the rows of `quipu report`.
// Usage: node viewers.mjs NODE_MODULES NAME, beside NAME.json.gz, NAME.speedscope.json and NAME.rows
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [modules, name] = process.argv.slice(2);
const require = createRequire(`${modules}/`);
const failures = [];

// The rows of the report, by event, thread and function.
const rows = readFileSync(`${name}.rows`, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const short = (object) => object.split('/').filter((part) => part).pop() ?? object;
const title = (row) => row.symbol ?? `[${short(row.object).replace(/^[[\]]+|[[\]]+$/g, '')}]`;
const wanted = new Map();
const add = (map, key, weight) => weight && map.set(key, (map.get(key) ?? 0) + weight);
for (const row of rows) add(wanted, [row.event, row.command, row.tid, title(row)].join('\t'), row.period);
const events = [...new Set(rows.map((row) => row.event))];

const compare = (judge, found) => {
  for (const key of new Set([...wanted.keys(), ...found.keys()])) {
    const [want, have] = [wanted.get(key) ?? 0, found.get(key) ?? 0];
    // Times are in ms with a fraction there.
    if (Math.abs(want - have) > 1) failures.push(`${judge}: ${key}: ${have} for ${want}`);
  }
  if (found.size === 0) failures.push(`${judge}: there is nothing`);
  console.log(`${judge}: ${name}: ${found.size} functions of threads`);
};

// Firefox Profiler's own command, in a session. Its daemon has half a second to start, which is short on a busy machine.
let session = `quipu-${process.pid}`;
const options = { encoding: 'utf8', timeout: 60000, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] };
const cli = (...words) => execFileSync(`${modules}/.bin/profiler-cli`, [...words, '--session', session], options);
const load = (tries) => {
  try {
    cli('load', `${name}.json.gz`);
  } catch (error) {
    const pid = /did not become ready[^]*pid (\d+)/.exec(error.stderr)?.[1];
    if (!pid || tries <= 1) throw error;
    try { process.kill(Number(pid)); } catch { /* It has ended. */ }
    session += 'x';
    load(tries - 1);
  }
};
try {
  load(20);
  const found = new Map();
  for (const thread of JSON.parse(cli('thread', 'list', '--json')).threads) {
    const [, command, event] = events.length > 1 ? thread.name.match(/^(.*) \((.*)\)$/) : [null, thread.name, events[0]];
    const { functions, weightType } = JSON.parse(cli('thread', 'functions', '--json', '--limit', '0', '--include-idle', '--thread', thread.threadHandle));
    for (const { name, selfSamples } of functions) {
      const weight = weightType === 'tracing-ms' ? selfSamples * 1e6 : selfSamples;
      add(found, [event, command, thread.tid.split('.')[0], name].join('\t'), weight);
    }
  }
  compare('Firefox Profiler', found);
} finally {
  try { cli('stop'); } catch { /* It had not begun. */ }
}

// speedscope: its schema, and the sums.
const schema = JSON.parse(readFileSync(`${modules}/speedscope/dist/release/file-format-schema.json`, 'utf8'));
const file = JSON.parse(readFileSync(`${name}.speedscope.json`, 'utf8'));
const validate = new (require('ajv').default)({ strict: false }).compile(schema);
if (!validate(file)) failures.push(`speedscope's schema: ${JSON.stringify(validate.errors?.slice(0, 3))}`);
const found = new Map();
for (const profile of file.profiles) {
  const [, event, command, tid] = profile.name.match(/^(.*): (.*) \((-?\d+)\)$/);
  profile.samples.forEach((frames, at) => add(found, [event, command, tid, file.shared.frames[frames.at(-1)].name].join('\t'), profile.weights[at]));
}
compare('speedscope', found);

for (const failure of failures.slice(0, 10)) console.log(`FAIL: ${failure}`);
process.exit(failures.length ? 1 : 0);
