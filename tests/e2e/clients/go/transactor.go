// The transactional program on franz-go; ../README.md has its commands and answers.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const answerWithin = 60 * time.Second

// A handle is one transactional producer, with a consumer in the same session where it has a group.
type handle struct {
	client  *kgo.Client
	session *kgo.GroupTransactSession
	max     int
}

func newHandle(broker string, words []string) (*handle, error) {
	timeoutMS, err := strconv.Atoi(words[1])
	if err != nil {
		return nil, err
	}
	options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.TransactionalID(words[0]),
		kgo.TransactionTimeout(time.Duration(timeoutMS) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil))}
	one := &handle{}
	if len(words) == 2 {
		one.client, err = kgo.NewClient(options...)
	} else {
		if one.max, err = strconv.Atoi(words[4]); err != nil {
			return nil, err
		}
		one.session, err = kgo.NewGroupTransactSession(append(options,
			kgo.ConsumerGroup(words[2]), kgo.ConsumeTopics(words[3]), kgo.RequireStableFetchOffsets(),
			kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(2*time.Second),
			kgo.HeartbeatInterval(200*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()))...)
		if err == nil {
			one.client = one.session.Client()
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_, _, err = one.client.ProducerID(ctx)
	return one, err
}

func (h *handle) send(ctx context.Context, topic string, words []string) (object, error) {
	records := make([]*kgo.Record, 0, len(words))
	for _, word := range words {
		number, value, _ := strings.Cut(word, ":")
		partition, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			return nil, err
		}
		records = append(records,
			&kgo.Record{Topic: topic, Partition: int32(partition), Value: []byte(value)})
	}
	if err := h.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, 0, len(records)) // the client fills them in, in whatever order they end
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	return object{"offsets": offsets}, nil
}

func (h *handle) poll(ctx context.Context) (object, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	read := [][]any{}
	fetches := h.session.PollRecords(ctx, h.max)
	fetches.EachRecord(func(r *kgo.Record) {
		read = append(read, []any{r.Partition, r.Offset, string(r.Value)})
	})
	return object{"records": read}, nil // what failed is polled again
}

func (h *handle) end(ctx context.Context, try kgo.TransactionEndTry) (object, error) {
	if h.session == nil {
		if try == kgo.TryAbort {
			if err := h.client.AbortBufferedRecords(ctx); err != nil {
				return nil, err
			}
		}
		return object{}, h.client.EndTransaction(ctx, try)
	}
	committed, err := h.session.End(ctx, try)
	if err == nil && !committed && try == kgo.TryCommit {
		return object{"aborted": true}, nil
	}
	return object{}, err
}

func (h *handle) do(command string, words []string) (object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	switch command {
	case "begin":
		if h.session != nil {
			return object{}, h.session.Begin()
		}
		return object{}, h.client.BeginTransaction()
	case "send":
		return h.send(ctx, words[0], words[1:])
	case "poll":
		return h.poll(ctx)
	case "offsets": // the session's commit sends them
		return object{}, nil
	case "commit":
		return h.end(ctx, kgo.TryCommit)
	case "abort":
		return h.end(ctx, kgo.TryAbort)
	}
	return nil, fmt.Errorf("unknown command %s", command)
}

func runTransactor(broker string, arguments []string) error {
	if arguments[0] == "read" {
		return runRead(broker, arguments[1], arguments[2:])
	}
	handles := map[string]*handle{}
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		answer, err := object{}, error(nil)
		if words[0] == "init" {
			handles[words[1]], err = newHandle(broker, words[2:])
		} else {
			answer, err = handles[words[1]].do(words[0], words[2:])
		}
		if err != nil {
			answer = object{"error": err.Error()}
		}
		emit(answer)
	}
	return scanner.Err()
}

// runRead prints every record of the topics from their start on, for ever.
func runRead(broker, isolation string, topics []string) error {
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(level),
		kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		return err
	}
	for {
		client.PollFetches(context.Background()).EachRecord(func(r *kgo.Record) {
			emit(object{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset,
				"key": string(r.Key), "value": string(r.Value)})
		})
	}
}
