// kafkajs: it has no consumer without a group, so here it produces, administers and lists offsets.
// Its codecs but gzip are plug-ins; kafkajs-snappy writes raw snappy, not Java's framed kind.
'use strict';
const {
  Kafka, CompressionTypes, CompressionCodecs, logLevel, ConfigResourceTypes,
} = require('kafkajs');
const lz4 = require('lz4-napi');
const zstd = require('@bokuweb/zstd-wasm');
const { TIMEOUT_MS, PARTITIONS, emit, until, run } = require('./contract.js');

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy');
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: async (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
});
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD };

const client = (broker) => new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING,
  requestTimeout: TIMEOUT_MS, retry: { retries: 2 } });

async function withAdmin(broker, body) {
  const admin = client(broker).admin();
  await admin.connect();
  try {
    await body(admin);
  } finally {
    await admin.disconnect();
  }
}

async function code(call) {
  try {
    return (await call) === false ? 36 : 0; // createTopics answers false for an existing topic
  } catch (error) {
    const inner = error.errors ? error.errors[0] : error.cause ?? error;
    return inner.code ?? String(error);
  }
}

const create = (admin, topic, numPartitions, configEntries) => code(admin.createTopics({
  topics: [{ topic, numPartitions, replicationFactor: 1, configEntries }], waitForLeaders: true }));

const asHeaders = (pairs) => pairs.reduce((object, [name, data]) => {
  (object[name] ??= []).push(data);
  return object;
}, {});

async function produce(broker, idempotent, topic, codec, records) {
  await zstd.init();
  await withAdmin(broker, async (admin) => {
    const forever = [{ name: 'retention.ms', value: '-1' }];
    const created = await create(admin, topic, PARTITIONS, forever);
    if (created) throw new Error(`create topic: error ${created}`);
  });
  const producer = client(broker).producer({ idempotent, allowAutoTopicCreation: false,
    maxInFlightRequests: idempotent ? 1 : 5 });
  await producer.connect();
  const size = idempotent ? 60 : records.length; // one send is one batch a partition
  for (let i = 0; i < records.length; i += size) {
    await producer.send({ topic, compression: codecs[codec], acks: idempotent ? -1 : 1,
      messages: records.slice(i, i + size).map((r) => ({ key: r.key, value: r.value,
        partition: r.partition, timestamp: String(r.timestamp), headers: asHeaders(r.headers) })) });
  }
  await producer.disconnect();
}

async function consume() {
  throw new Error('kafkajs has no consumer without a group');
}

const offsets = (broker, topic, timestamp) => withAdmin(broker, async (admin) => {
  const bounds = await admin.fetchTopicOffsets(topic);
  const times = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp);
  for (const { partition, low, high } of bounds.sort((a, b) => a.partition - b.partition)) {
    emit({ partition, earliest: Number(low), latest: Number(high),
      at: Number(times.find((entry) => entry.partition === partition).offset) });
  }
});

const admin = (broker, topic) => withAdmin(broker, async (admin) => {
  const describe = async (wanted) => {
    let parts;
    await until(async () => {
      parts = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions;
      return parts.length === wanted;
    });
    return parts.sort((a, b) => a.partitionId - b.partitionId);
  };
  const grow = (count) => code(admin.createPartitions({ topicPartitions: [{ topic, count }] }));
  const remove = () => code(admin.deleteTopics({ topics: [topic] }));

  const hour = [{ name: 'retention.ms', value: '3600000' }];
  emit({ step: 'create', code: await create(admin, topic, 2, hour) });
  emit({ step: 'create again', code: await create(admin, topic, 2, []) });
  const parts = await describe(2);
  emit({ step: 'describe', partitions: parts.map((p) => p.partitionId),
    replicas: parts.map((p) => p.replicas.length) });
  const { resources } = await admin.describeConfigs({ includeSynonyms: true,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }] });
  emit({ step: 'config', value: resources[0].configEntries[0].configValue });
  emit({ step: 'grow', code: await grow(5) });
  emit({ step: 'describe grown', partitions: (await describe(5)).map((p) => p.partitionId) });
  emit({ step: 'shrink', code: await grow(3) });
  emit({ step: 'delete', code: await remove() });
  const gone = await until(async () => !(await admin.listTopics()).includes(topic));
  emit({ step: 'gone', gone });
  emit({ step: 'delete again', code: await remove() });
});

run({ produce, consume, offsets, admin });
