// The transactional program on kafkajs. Its consumers push; what they push waits here to be polled.
'use strict';
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs');
const { ANSWER_WITHIN_MS, POLL_MS, SESSION_MS, run } = require('./transactor.js');

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy'); // franz-go's default

const client = (broker) => new Kafka({ brokers: [broker], logLevel: logLevel.WARN,
  requestTimeout: ANSWER_WITHIN_MS / 2,
  retry: { initialRetryTime: 50, maxRetryTime: 1000, retries: 30 },
  logCreator: () => ({ log }) => console.error(JSON.stringify(log)) });

async function producer(broker, id, timeoutMs) {
  const inner = client(broker).producer({ idempotent: true, transactionalId: id,
    transactionTimeout: timeoutMs, maxInFlightRequests: 1, allowAutoTopicCreation: false });
  await inner.connect();
  let first = await inner.transaction(); // this one asks for the producer id
  let now;
  return {
    begin: async () => {
      now = first ?? await inner.transaction();
      first = null;
    },
    send: async (topic, records) => {
      const answers = await now.send({ topic,
        messages: records.map(([partition, value]) => ({ partition, value })) });
      const next = new Map(answers.map((one) => [one.partition, Number(one.baseOffset)]));
      return records.map(([partition]) => {
        const offset = next.get(partition);
        next.set(partition, offset + 1);
        return offset;
      });
    },
    sendOffsets: (consumer, next) => now.sendOffsets({ consumerGroupId: consumer.group,
      topics: [{ topic: consumer.topic, partitions: next.map(([partition, offset]) =>
        ({ partition, offset: String(offset) })) }] }),
    commit: () => now.commit(),
    abort: () => now.abort() };
}

// What was pushed before a rewind may still arrive: only the offset that is due counts, so the topic
// must hold plain records alone.
async function consumer(broker, group, topic, limit) {
  const kafka = client(broker);
  const inner = kafka.consumer({ groupId: group, sessionTimeout: SESSION_MS,
    heartbeatInterval: SESSION_MS / 10, readUncommitted: false, maxWaitTimeInMs: 500,
    allowAutoTopicCreation: false });
  const due = new Map();
  let waiting = [];
  let wake = () => {};
  await inner.connect();
  await inner.subscribe({ topics: [topic], fromBeginning: true });
  await inner.run({ autoCommit: false, eachMessage: async ({ partition, message }) => {
    const offset = Number(message.offset);
    if (offset !== (due.get(partition) ?? offset)) return;
    due.set(partition, offset + 1);
    waiting.push([partition, offset, message.value.toString()]);
    wake();
  } });
  return { group, topic,
    poll: async () => {
      if (waiting.length === 0) {
        await new Promise((resolve) => {
          wake = resolve;
          setTimeout(resolve, POLL_MS);
        });
      }
      return waiting.splice(0, limit);
    },
    rewind: async () => {
      const admin = kafka.admin();
      await admin.connect();
      const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      await admin.disconnect();
      waiting = [];
      for (const { partition, offset } of partitions) {
        due.set(partition, Math.max(Number(offset), 0));
        inner.seek({ topic, partition, offset: String(due.get(partition)) });
      }
    } };
}

// It has no consumer without a group. A member that joins again starts again: it commits nothing.
async function read(broker, isolation, topics, visit) {
  const due = new Map();
  const inner = client(broker).consumer({ groupId: `reader-${isolation}-${process.pid}`,
    readUncommitted: isolation === 'read_uncommitted', maxWaitTimeInMs: 500,
    sessionTimeout: SESSION_MS, heartbeatInterval: SESSION_MS / 10,
    allowAutoTopicCreation: false });
  await inner.connect();
  await inner.subscribe({ topics, fromBeginning: true });
  await inner.run({ autoCommit: false, eachMessage: async ({ topic, partition, message }) => {
    const place = `${topic} ${partition}`;
    if (Number(message.offset) < (due.get(place) ?? 0)) return;
    due.set(place, Number(message.offset) + 1);
    visit(topic, partition, Number(message.offset), message.value);
  } });
  await new Promise(() => {});
}

run({ producer, consumer, read });
