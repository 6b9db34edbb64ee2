// @confluentinc/kafka-javascript (librdkafka), through its callback API: that one keeps null apart
// from empty, and headers in order. The library demands a group.id; assign() never joins it.
'use strict';
const kafka = require('@confluentinc/kafka-javascript');
const { TIMEOUT_MS, PARTITIONS, b64, emit, until, run } = require('./contract.js');

const promise = (call) => new Promise((resolve, reject) => {
  call((error, result) => (error ? reject(error) : resolve(result)));
});
const code = (call) => promise(call).then(() => 0, (error) => error.code ?? String(error));
const connect = (client) => promise((done) => client.connect({ timeout: TIMEOUT_MS }, done));
const disconnect = (client) => promise((done) => client.disconnect(done));
// The binding takes a Buffer of no length for null unless it points somewhere.
const somewhere = Buffer.from('x');
const pointed = (data) => (data !== null && data.length === 0 ? somewhere.subarray(0, 0) : data);
const newAdmin = (broker) => kafka.AdminClient.create({ 'bootstrap.servers': broker });

const create = (admin, topic, partitions, config) => code((done) => admin.createTopic(
  { topic, num_partitions: partitions, replication_factor: 1, config }, TIMEOUT_MS, done));

async function produce(broker, idempotent, topic, codec, records) {
  const admin = newAdmin(broker);
  const created = await create(admin, topic, PARTITIONS, { 'retention.ms': '-1' });
  admin.disconnect();
  if (created) throw new Error(`create topic: error ${created}`);
  const producer = new kafka.Producer({ 'bootstrap.servers': broker, 'compression.type': codec,
    'delivery.timeout.ms': TIMEOUT_MS, dr_cb: true, 'enable.idempotence': idempotent,
    ...(idempotent ? { acks: -1, 'linger.ms': 1, 'batch.num.messages': 20 }
      : { acks: 1, 'linger.ms': 50 }) });
  await connect(producer);
  const failures = [];
  let reports = 0;
  producer.on('delivery-report', (error) => {
    reports += 1;
    if (error) failures.push(error.message);
  });
  producer.setPollInterval(20);
  for (const r of records) {
    producer.produce(topic, r.partition, pointed(r.value), pointed(r.key), r.timestamp, null,
      r.headers.map(([name, data]) => ({ [name]: pointed(data) })));
  }
  await promise((done) => producer.flush(TIMEOUT_MS, done));
  await until(() => reports === records.length);
  await disconnect(producer);
  if (failures.length || reports !== records.length) {
    throw new Error(`${reports} reports of ${records.length}, ${failures.slice(0, 3)}`);
  }
}

async function withConsumer(broker, topic, body) {
  const consumer = new kafka.KafkaConsumer({ 'bootstrap.servers': broker, 'group.id': 'unused',
    'enable.auto.commit': false }, { 'auto.offset.reset': 'error' });
  await connect(consumer);
  consumer.setDefaultConsumeTimeout(500);
  const metadata = await promise((done) =>
    consumer.getMetadata({ topic, timeout: TIMEOUT_MS }, done));
  const partitions = metadata.topics[0].partitions.map((p) => p.id).sort((a, b) => a - b);
  const bounds = await Promise.all(partitions.map((p) => promise((done) =>
    consumer.queryWatermarkOffsets(topic, p, TIMEOUT_MS, done))));
  try {
    await body(consumer, partitions, bounds);
  } finally {
    await disconnect(consumer);
  }
}

async function poll(consumer, count, visit) {
  const complete = count === 0 || await until(async () => { // consume(0) would never answer
    const messages = await promise((done) => consumer.consume(Math.min(count, 500), done));
    messages.forEach(visit);
    count -= messages.length;
    return count <= 0;
  });
  if (!complete) throw new Error(`${count} records missing`);
}

const consume = (broker, topic) =>
  withConsumer(broker, topic, async (consumer, partitions, bounds) => {
    consumer.assign(partitions.map((partition) => ({ topic, partition, offset: 0 })));
    const total = bounds.reduce((sum, bound) => sum + bound.highOffset, 0);
    await poll(consumer, total, (m) => emit({ topic, partition: m.partition, offset: m.offset,
      timestamp: m.timestamp, key: b64(m.key), value: b64(m.value),
      headers: (m.headers || []).map((header) => Object.entries(header)[0])
        .map(([name, data]) => [name, b64(data)]) }));
  });

const offsets = (broker, topic, timestamp) =>
  withConsumer(broker, topic, async (consumer, partitions, bounds) => {
    for (const partition of partitions) {
      const { lowOffset, highOffset } = bounds[partition];
      const [{ offset }] = await promise((done) =>
        consumer.offsetsForTimes([{ topic, partition, offset: timestamp }], TIMEOUT_MS, done));
      let last;
      consumer.assign([{ topic, partition, offset: highOffset - 1 }]);
      await poll(consumer, 1, (m) => { last = m; });
      emit({ partition, earliest: lowOffset, latest: highOffset,
        at: offset < 0 ? highOffset : offset, last: last.offset, last_value: b64(last.value) });
    }
  });

async function admin(broker, topic) {
  const client = newAdmin(broker);
  const list = () => promise((done) => client.listTopics({ timeout: TIMEOUT_MS }, done));
  const describe = async (wanted) => {
    let parts;
    await until(async () => {
      const [described] = await promise((done) =>
        client.describeTopics([topic], { timeout: TIMEOUT_MS }, done));
      parts = described.partitions;
      return parts.length === wanted;
    });
    return parts.sort((a, b) => a.partition - b.partition);
  };
  const grow = (count) => code((done) => client.createPartitions(topic, count, TIMEOUT_MS, done));
  const remove = () => code((done) => client.deleteTopic(topic, TIMEOUT_MS, done));

  emit({ step: 'create', code: await create(client, topic, 2, { 'retention.ms': '3600000' }) });
  emit({ step: 'create again', code: await create(client, topic, 2, {}) });
  const parts = await describe(2);
  emit({ step: 'describe', partitions: parts.map((p) => p.partition),
    replicas: parts.map((p) => p.replicas.length) });
  // The library has no DescribeConfigs.
  emit({ step: 'grow', code: await grow(5) });
  emit({ step: 'describe grown', partitions: (await describe(5)).map((p) => p.partition) });
  emit({ step: 'shrink', code: await grow(3) });
  emit({ step: 'delete', code: await remove() });
  emit({ step: 'gone', gone: await until(async () => !(await list()).includes(topic)) });
  emit({ step: 'delete again', code: await remove() });
  client.disconnect();
}

run({ produce, consume, offsets, admin });
