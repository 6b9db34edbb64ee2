// What ../../exactly_once works with on franz-go: fills a topic, and copies it within transactions.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// runFill makes the topics FROM and TO of PARTITIONS and writes RECORDS to FROM: the values count
// from 0 on, the keys are the values modulo KEYS.
func runFill(broker, from, to string, numbers []int) error {
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.UnknownTopicRetries(-1),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).CreateTopics(ctx, int32(numbers[0]), 1, nil, from, to)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	for number := range numbers[1] {
		record := &kgo.Record{Topic: from, Value: []byte(strconv.Itoa(number)),
			Key: []byte(strconv.Itoa(number % numbers[2]))}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// runCopier copies FROM to TO for ever, key, value and partition as they are, with the offsets in the
// transactions; it ends with what a transactional producer cannot go on after.
func runCopier(broker, id, group, from, to string, atMost int) error {
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(broker), kgo.TransactionalID(id),
		kgo.TransactionTimeout(20*time.Second), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0), kgo.ConsumerGroup(group), kgo.ConsumeTopics(from),
		kgo.RequireStableFetchOffsets(), kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(600*time.Millisecond), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)))
	if err != nil {
		return err
	}
	ctx := context.Background()
	for {
		records := session.PollRecords(ctx, atMost).Records()
		if len(records) == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		copies := make([]*kgo.Record, 0, len(records))
		for _, record := range records {
			copies = append(copies, &kgo.Record{Topic: to, Partition: record.Partition, Key: record.Key,
				Value: record.Value})
		}
		failed := session.ProduceSync(ctx, copies...).FirstErr()
		committed, err := session.End(ctx, kgo.TransactionEndTry(failed == nil))
		if err != nil {
			return fmt.Errorf("end: %w", err)
		}
		fmt.Fprintln(os.Stderr, len(copies), "records, sent:", failed, "committed:", committed)
	}
}
