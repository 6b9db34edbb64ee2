// What the JavaScript group members share: the commands and the JSON lines of ../README.md.
'use strict';
const fs = require('fs');
const readline = require('readline');

const [broker, group, topic, assignor, sessionMs, name] = process.argv.slice(2);
const emit = (event, fields) => fs.writeSync(1, JSON.stringify({ event, ...fields }) + '\n');

const owned = new Set();
const next = new Map();
const sorted = () => [...owned].sort((a, b) => a - b);

function assigned(partitions) {
  partitions.forEach((partition) => owned.add(partition));
  [...next.keys()].filter((partition) => !owned.has(partition)).forEach((p) => next.delete(p));
  emit('assigned', { partitions: sorted() });
}

function revoked(partitions) {
  partitions.forEach((partition) => owned.delete(partition));
  emit('revoked', { partitions: sorted() });
}

function record(partition, offset, value) {
  emit('record', { partition, offset: Number(offset), value: value.toString() });
  if (owned.has(partition)) next.set(partition, Number(offset) + 1);
}

// commit: takes [{topic, partition, offset}] and returns a promise; close: leaves the group.
async function serve({ commit, close }) {
  for await (const command of readline.createInterface({ input: process.stdin })) {
    if (command !== 'commit') break;
    const entries = [...next].filter(([partition]) => owned.has(partition));
    const offsets = Object.fromEntries(entries);
    try {
      const list = entries.map(([partition, offset]) => ({ topic, partition, offset }));
      if (list.length > 0) await commit(list);
      emit('committed', { offsets });
    } catch (error) {
      emit('commit failed', { error: String(error.message || error) });
    }
  }
  await close();
  emit('closed', {});
  process.exit(0);
}

function fail(error) {
  emit('error', { error: String(error.stack || error) });
  process.exit(1);
}

module.exports = { broker, group, topic, assignor, sessionMs: Number(sessionMs), name,
  owned, assigned, revoked, record, serve, fail };
