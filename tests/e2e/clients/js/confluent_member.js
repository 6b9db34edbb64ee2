// A group member on @confluentinc/kafka-javascript (librdkafka), through its callback API.
'use strict';
const kafka = require('@confluentinc/kafka-javascript');
const member = require('./member.js');

const ASSIGN = -175;
const promise = (call) => new Promise((resolve, reject) => {
  call((error, result) => (error ? reject(error) : resolve(result)));
});

function rebalance(error, assignment) {
  const partitions = assignment.map((one) => one.partition);
  const cooperative = this.rebalanceProtocol() === 'COOPERATIVE';
  if (error.code === ASSIGN) {
    if (cooperative) this.incrementalAssign(assignment); else this.assign(assignment);
    member.assigned(partitions);
  } else {
    if (cooperative) this.incrementalUnassign(assignment); else this.unassign();
    member.revoked(partitions);
  }
}

async function main() {
  const consumer = new kafka.KafkaConsumer({ 'bootstrap.servers': member.broker,
    'group.id': member.group, 'client.id': member.name, 'group.protocol': 'classic',
    'partition.assignment.strategy': member.assignor, 'session.timeout.ms': member.sessionMs,
    'heartbeat.interval.ms': member.sessionMs / 10, 'enable.auto.commit': false,
    'reconnect.backoff.max.ms': 1000, rebalance_cb: rebalance },
  { 'auto.offset.reset': 'earliest' });
  await promise((done) => consumer.connect({}, done));
  consumer.on('event.error', (error) => console.error(error));
  consumer.subscribe([member.topic]);
  consumer.setDefaultConsumeTimeout(200);
  consumer.consume((error, message) => {
    if (error) console.error(error); // the library goes on by itself
    else member.record(message.partition, message.offset, message.value);
  });
  await member.serve({
    commit: async (list) => consumer.commitSync(list),
    close: () => promise((done) => consumer.disconnect(done)) });
}

main().catch(member.fail);
