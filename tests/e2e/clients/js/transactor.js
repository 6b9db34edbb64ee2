// What the transactional JavaScript programs share: the commands and JSON lines of ../README.md.
'use strict';
const fs = require('fs');
const readline = require('readline');

const ANSWER_WITHIN_MS = 60000;
const POLL_MS = 1000;
const SESSION_MS = 2000;
const emit = (fields) => fs.writeSync(1, JSON.stringify(fields) + '\n');

// One transactional producer, and its consumer where it has one; next: the offsets to commit.
class Handle {
  static async make(library, broker, [id, timeoutMs, group, topic, limit]) {
    const one = new Handle();
    one.next = new Map();
    if (group) one.consumer = await library.consumer(broker, group, topic, Number(limit));
    one.producer = await library.producer(broker, id, Number(timeoutMs));
    return one;
  }

  async begin() { await this.producer.begin(); }

  async send(topic, ...words) {
    const records = words.map((word) => [Number(word.slice(0, word.indexOf(':'))),
      word.slice(word.indexOf(':') + 1)]);
    return { offsets: await this.producer.send(topic, records) };
  }

  async poll() {
    const records = await this.consumer.poll();
    records.forEach(([partition, offset]) => this.next.set(partition, offset + 1));
    return { records };
  }

  async offsets() { await this.producer.sendOffsets(this.consumer, [...this.next]); }

  async commit() {
    await this.producer.commit();
    this.next.clear();
  }

  async abort() {
    await this.producer.abort();
    this.next.clear();
    if (this.consumer) await this.consumer.rewind();
  }
}

// library: producer(broker, id, timeoutMs) resolves to {begin, send, sendOffsets, commit, abort},
// consumer(broker, group, topic, limit) to {poll, rewind}, read(broker, isolation, topics, visit)
// calls visit(topic, partition, offset, value) for every record of the topics for ever.
async function run(library) {
  const [broker, command, ...rest] = process.argv.slice(2);
  if (command === 'read') {
    await library.read(broker, rest[0], rest.slice(1), (topic, partition, offset, value) =>
      emit({ topic, partition, offset, value: value.toString() }));
    return;
  }
  const handles = new Map();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [what, name, ...words] = line.split(' ');
    try {
      if (what === 'init') {
        handles.set(name, await Handle.make(library, broker, words));
        emit({});
      } else {
        emit(await handles.get(name)[what](...words) ?? {});
      }
    } catch (error) {
      console.error(error);
      emit({ error: `${error.name}: ${error.type ?? error.code ?? ''} ${error.message}` });
    }
  }
  process.exit(0);
}

module.exports = { ANSWER_WITHIN_MS, POLL_MS, SESSION_MS, run };
