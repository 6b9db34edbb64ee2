// What the JavaScript programs share: the command line and the JSON lines of ../README.md.
'use strict';
const fs = require('fs');

const TIMEOUT_MS = 30000;
const PARTITIONS = 3;
const b64 = (data) => (data == null ? null : Buffer.from(data).toString('base64'));
const unb64 = (text) => (text === null ? null : Buffer.from(text, 'base64'));
const emit = (fields) => fs.writeSync(1, JSON.stringify(fields) + '\n');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition) {
  for (const deadline = Date.now() + TIMEOUT_MS; Date.now() < deadline; await sleep(50)) {
    if (await condition()) return true;
  }
  return false;
}

function readRecords() {
  return fs.readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => {
    const { partition, timestamp, key, value, headers } = JSON.parse(line);
    return { partition, timestamp, key: unb64(key), value: unb64(value),
      headers: headers.map(([name, data]) => [name, unb64(data)]) };
  });
}

// library: {produce(broker, idempotent, topic, codec, records), consume(broker, topic),
// offsets(broker, topic, timestamp), admin(broker, topic)}; each topic fails alone.
async function run(library) {
  const [command, broker, ...rest] = process.argv.slice(2);
  let jobs;
  if (command === 'produce') {
    const records = readRecords();
    jobs = rest.slice(1).map((item) => item.split('=')).map(([topic, codec]) => [topic,
      () => library.produce(broker, rest[0] === 'idempotent', topic, codec, records)]);
  } else if (command === 'consume') {
    jobs = rest.map((topic) => [topic, () => library.consume(broker, topic)]);
  } else if (command === 'offsets') {
    jobs = [[rest[0], () => library.offsets(broker, rest[0], Number(rest[1]))]];
  } else if (command === 'admin') {
    jobs = [[rest[0], () => library.admin(broker, rest[0])]];
  } else {
    console.error(`unknown command ${command}`);
    process.exit(2);
  }
  let failed = false;
  for (const [topic, job] of jobs) {
    try {
      await Promise.race([job(), sleep(2 * TIMEOUT_MS).then(() => { throw new Error('hangs'); })]);
      emit({ topic, done: true });
    } catch (error) {
      console.error(error);
      emit({ topic, error: String(error.message || error) });
      failed = true;
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { TIMEOUT_MS, PARTITIONS, b64, emit, sleep, until, run };
