// A group member on kafkajs, whose only assigner is its own RoundRobinAssigner.
'use strict';
const { Kafka, logLevel } = require('kafkajs');
const member = require('./member.js');

async function main() {
  const kafka = new Kafka({ brokers: [member.broker], clientId: member.name,
    logLevel: logLevel.ERROR, retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: 60 },
    logCreator: () => ({ log }) => console.error(JSON.stringify(log)) });
  const consumer = kafka.consumer({ groupId: member.group, sessionTimeout: member.sessionMs,
    heartbeatInterval: member.sessionMs / 10, rebalanceTimeout: 4 * member.sessionMs,
    maxWaitTimeInMs: 500, allowAutoTopicCreation: false });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.revoked([...member.owned]); // the library tells of no revocation before this one
    member.assigned(payload.memberAssignment[member.topic] ?? []);
  });
  consumer.on(consumer.events.REBALANCING, () => member.revoked([...member.owned]));
  await consumer.connect();
  await consumer.subscribe({ topics: [member.topic], fromBeginning: true });
  await consumer.run({ autoCommit: false,
    eachMessage: async ({ partition, message }) =>
      member.record(partition, message.offset, message.value) });
  await member.serve({
    commit: (list) => consumer.commitOffsets(list.map((one) => ({ ...one,
      offset: String(one.offset) }))),
    close: () => consumer.disconnect() });
}

main().catch(member.fail);
