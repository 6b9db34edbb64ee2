// The transactional program on @confluentinc/kafka-javascript (librdkafka), through its callback API.
'use strict';
const kafka = require('@confluentinc/kafka-javascript');
const { ANSWER_WITHIN_MS, POLL_MS, SESSION_MS, run } = require('./transactor.js');

const promise = (call) => new Promise((resolve, reject) => {
  call((error, result) => (error ? reject(error) : resolve(result)));
});
const connect = (client) => promise((done) => client.connect({ timeout: ANSWER_WITHIN_MS }, done));

async function producer(broker, id, timeoutMs) {
  const inner = new kafka.Producer({ 'bootstrap.servers': broker, 'transactional.id': id,
    'transaction.timeout.ms': timeoutMs, 'linger.ms': 0, 'reconnect.backoff.max.ms': 1000,
    dr_cb: true });
  await connect(inner);
  inner.on('event.error', (error) => console.error(error));
  const reports = new Map(); // by opaque: what takes the report
  inner.on('delivery-report', (error, report) => reports.get(report.opaque)(error, report));
  inner.setPollInterval(20);
  await promise((done) => inner.initTransactions(ANSWER_WITHIN_MS, done));
  let count = 0;
  const deliver = (topic, partition, value) => promise((done) => {
    count += 1;
    const opaque = count;
    reports.set(opaque, (error, report) => {
      reports.delete(opaque);
      done(error, report?.offset);
    });
    inner.produce(topic, partition, Buffer.from(value), null, null, opaque);
  });
  return {
    begin: () => promise((done) => inner.beginTransaction(done)),
    send: (topic, records) => Promise.all(records.map(([partition, value]) =>
      deliver(topic, partition, value))),
    sendOffsets: (consumer, next) => promise((done) => inner.sendOffsetsToTransaction(
      next.map(([partition, offset]) => ({ topic: consumer.topic, partition, offset })),
      consumer.inner, ANSWER_WITHIN_MS, done)),
    commit: () => promise((done) => inner.commitTransaction(ANSWER_WITHIN_MS, done)),
    abort: () => promise((done) => inner.abortTransaction(ANSWER_WITHIN_MS, done)) };
}

async function consumer(broker, group, topic, limit) {
  const inner = new kafka.KafkaConsumer({ 'bootstrap.servers': broker, 'group.id': group,
    'group.protocol': 'classic', 'partition.assignment.strategy': 'range',
    'session.timeout.ms': SESSION_MS, 'heartbeat.interval.ms': SESSION_MS / 10,
    'isolation.level': 'read_committed', 'enable.auto.commit': false,
    'reconnect.backoff.max.ms': 1000 }, { 'auto.offset.reset': 'earliest' });
  await connect(inner);
  inner.on('event.error', (error) => console.error(error));
  inner.setDefaultConsumeTimeout(POLL_MS);
  inner.subscribe([topic]);
  return { inner, topic,
    poll: async () => (await promise((done) => inner.consume(limit, done))).map((m) =>
      [m.partition, m.offset, m.value.toString()]),
    rewind: async () => {
      const committed = await promise((done) => inner.committed(null, ANSWER_WITHIN_MS, done));
      inner.assign(committed.map(({ partition, offset }) =>
        ({ topic, partition, offset: Math.max(offset ?? 0, 0) })));
    } };
}

async function read(broker, isolation, topics, visit) {
  const inner = new kafka.KafkaConsumer({ 'bootstrap.servers': broker,
    'group.id': `unused-${process.pid}`, 'enable.auto.commit': false,
    'isolation.level': isolation, 'reconnect.backoff.max.ms': 1000,
    'topic.metadata.refresh.interval.ms': 2000 },
  { 'auto.offset.reset': 'earliest' });
  await connect(inner);
  inner.on('event.error', (error) => console.error(error));
  inner.setDefaultConsumeTimeout(POLL_MS);
  const places = [];
  for (const topic of topics) {
    const metadata = await promise((done) =>
      inner.getMetadata({ topic, timeout: ANSWER_WITHIN_MS }, done));
    const found = metadata.topics.find((one) => one.name === topic);
    places.push(...found.partitions.map(({ id }) => ({ topic, partition: id, offset: 0 })));
  }
  inner.assign(places);
  for (;;) {
    const messages = await promise((done) => inner.consume(500, done));
    messages.forEach((m) => visit(m.topic, m.partition, m.offset, m.value));
  }
}

run({ producer, consumer, read });
