// The Go program of the client matrix, on franz-go; ../README.md has the contract.
package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	timeout    = 30 * time.Second
	partitions = 3
)

type object = map[string]any

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: franzgo COMMAND BROKER …")
		os.Exit(2)
	}
	command, broker, rest := os.Args[1], os.Args[2], os.Args[3:]
	failed := false
	each := func(topic string, job func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := job(ctx); err != nil {
			emit(object{"topic": topic, "error": err.Error()})
			failed = true
			return
		}
		emit(object{"topic": topic, "done": true})
	}
	switch command {
	case "feeder":
		if err := runFeeder(broker); err != nil {
			panic(err)
		}
	case "member":
		if err := runMember(broker, rest[0], rest[1], rest[2], rest[3], rest[4]); err != nil {
			emit(object{"event": "error", "error": err.Error()})
			failed = true
		}
	case "transactor":
		if err := runTransactor(broker, rest); err != nil {
			panic(err)
		}
	case "fill":
		numbers := []int{0, 0, 0}
		for i, word := range rest[2:] {
			numbers[i], _ = strconv.Atoi(word)
		}
		if err := runFill(broker, rest[0], rest[1], numbers); err != nil {
			panic(err)
		}
	case "copier":
		atMost, _ := strconv.Atoi(rest[4])
		if err := runCopier(broker, rest[0], rest[1], rest[2], rest[3], atMost); err != nil {
			panic(err)
		}
	case "produce":
		records := readRecords()
		for _, item := range rest[1:] {
			topic, codec, _ := strings.Cut(item, "=")
			each(topic, func(ctx context.Context) error {
				return produce(ctx, broker, rest[0] == "idempotent", topic, codecs[codec], records)
			})
		}
	case "consume":
		for _, topic := range rest {
			each(topic, func(ctx context.Context) error { return consume(ctx, broker, topic) })
		}
	case "offsets":
		timestamp, _ := strconv.ParseInt(rest[1], 10, 64)
		each(rest[0], func(ctx context.Context) error { return offsets(ctx, broker, rest[0], timestamp) })
	case "admin":
		each(rest[0], func(ctx context.Context) error { return admin(ctx, broker, rest[0]) })
	default:
		fmt.Fprintln(os.Stderr, "unknown command", command)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

type line struct {
	Partition int32
	Timestamp int64
	Key       *string
	Value     *string
	Headers   [][2]*string
}

func readRecords() []line {
	var lines []line
	scanner := bufio.NewScanner(os.Stdin)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			panic(err)
		}
		lines = append(lines, one)
	}
	return lines
}

func produce(ctx context.Context, broker string, idempotent bool, topic string,
	codec kgo.CompressionCodec, lines []line) error {
	options := []kgo.Opt{kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec)}
	if idempotent { // franz-go's default; small batches, so that many are in flight
		options = append(options, kgo.ProducerBatchMaxBytes(1024), kgo.ProducerLinger(0))
	} else {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()),
			kgo.ProducerLinger(50*time.Millisecond))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	forever := "-1"
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1,
		map[string]*string{"retention.ms": &forever}, topic)
	if err != nil {
		return fmt.Errorf("create topic: %w", err)
	}
	records := make([]*kgo.Record, 0, len(lines))
	for _, one := range lines {
		record := &kgo.Record{Topic: topic, Partition: one.Partition,
			Timestamp: time.UnixMilli(one.Timestamp), Key: bytesOf(one.Key), Value: bytesOf(one.Value)}
		for _, header := range one.Headers {
			record.Headers = append(record.Headers,
				kgo.RecordHeader{Key: *header[0], Value: bytesOf(header[1])})
		}
		records = append(records, record)
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, broker string, topic string) error {
	client, ends, err := listEnds(ctx, broker, topic)
	if err != nil {
		return err
	}
	defer client.Close()
	var left int64
	assignment := map[int32]kgo.Offset{}
	for partition, end := range ends {
		left += end
		assignment[partition] = kgo.NewOffset().At(0)
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: assignment})
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d records missing: %w", left, err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			left--
			headers := make([][2]any, 0, len(record.Headers))
			for _, header := range record.Headers {
				headers = append(headers, [2]any{header.Key, textOf(header.Value)})
			}
			emit(object{"topic": topic, "partition": record.Partition, "offset": record.Offset,
				"timestamp": record.Timestamp.UnixMilli(), "key": textOf(record.Key),
				"value": textOf(record.Value), "headers": headers})
		})
	}
	return nil
}

func listEnds(ctx context.Context, broker, topic string) (*kgo.Client, map[int32]int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return nil, nil, err
	}
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(offset kadm.ListedOffset) { ends[offset.Partition] = offset.Offset })
	return client, ends, nil
}

func offsets(ctx context.Context, broker string, topic string, timestamp int64) error {
	client, ends, err := listEnds(ctx, broker, topic)
	if err != nil {
		return err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	// kadm itself turns "no such record" into the end offset.
	times, err := adm.ListOffsetsAfterMilli(ctx, timestamp, topic)
	if err != nil {
		return err
	}
	for partition := int32(0); partition < int32(len(ends)); partition++ {
		client.AddConsumePartitions(map[string]map[int32]kgo.Offset{
			topic: {partition: kgo.NewOffset().At(ends[partition] - 1)}})
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		last := fetches.Records()[0]
		client.RemoveConsumePartitions(map[string][]int32{topic: {partition}})
		start, _ := starts.Lookup(topic, partition)
		at, _ := times.Lookup(topic, partition)
		emit(object{"partition": partition, "earliest": start.Offset, "latest": ends[partition],
			"at": at.Offset, "last": last.Offset, "last_value": textOf(last.Value)})
	}
	return nil
}

func admin(ctx context.Context, broker string, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		return err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	describe := func(wanted int) ([]int32, []int) {
		for {
			details, _ := adm.ListTopics(ctx, topic)
			var replicas []int
			for _, partition := range details[topic].Partitions.Sorted() {
				replicas = append(replicas, len(partition.Replicas))
			}
			if len(replicas) == wanted || ctx.Err() != nil {
				return details[topic].Partitions.Numbers(), replicas
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	grow := func(count int) any {
		answers, err := adm.UpdatePartitions(ctx, count, topic)
		if err == nil {
			err = answers[topic].Err
		}
		return code(err)
	}
	hour := "3600000"
	_, err = adm.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &hour}, topic)
	emit(object{"step": "create", "code": code(err)})
	_, err = adm.CreateTopic(ctx, 2, 1, nil, topic)
	emit(object{"step": "create again", "code": code(err)})
	numbers, replicas := describe(2)
	emit(object{"step": "describe", "partitions": numbers, "replicas": replicas})
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	for _, config := range configs[0].Configs {
		if config.Key == "retention.ms" {
			emit(object{"step": "config", "value": config.MaybeValue()})
		}
	}
	emit(object{"step": "grow", "code": grow(5)})
	numbers, _ = describe(5)
	emit(object{"step": "describe grown", "partitions": numbers})
	emit(object{"step": "shrink", "code": grow(3)})
	_, err = adm.DeleteTopic(ctx, topic)
	emit(object{"step": "delete", "code": code(err)})
	gone := false
	for !gone && ctx.Err() == nil {
		details, err := adm.ListTopics(ctx)
		gone = err == nil && !details.Has(topic)
		time.Sleep(50 * time.Millisecond)
	}
	emit(object{"step": "gone", "gone": gone})
	_, err = adm.DeleteTopic(ctx, topic)
	emit(object{"step": "delete again", "code": code(err)})
	return nil
}

func code(err error) any {
	var protocol *kerr.Error
	if errors.As(err, &protocol) {
		return protocol.Code
	}
	if err != nil {
		return err.Error()
	}
	return 0
}

func bytesOf(text *string) []byte {
	if text == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(*text)
	if err != nil {
		panic(err)
	}
	if data == nil {
		return []byte{}
	}
	return data
}

func textOf(data []byte) any {
	if data == nil {
		return nil
	}
	return base64.StdEncoding.EncodeToString(data)
}

var out = json.NewEncoder(os.Stdout)

func emit(fields object) {
	if err := out.Encode(fields); err != nil {
		panic(err)
	}
}
