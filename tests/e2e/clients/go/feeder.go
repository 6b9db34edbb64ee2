// The feeder of groups.py: makes topics, writes records and asks for groups. One JSON object a line
// on standard input, one line back for each, {"error": …} if it failed:
//
//	{"do": "create", "topic", "partitions"}
//	{"do": "produce", "topic", "partitions", "first", "count"}: to each partition, the values
//	    first … first + count - 1, or with "text" TEXT-PARTITION-NUMBER; the partition and offset of
//	    each record
//	{"do": "offsets", "group", "topic"}: the committed offset of each partition, once no
//	    transaction is about to change it
//	{"do": "describe", "group"}: its state, its assignor, the partitions of each client id
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const feederTimeout = 2 * timeout

type wish struct {
	Do, Topic, Group, Text string
	Partitions, Count      int32
	First                  int
}

func (w wish) value(partition int32, number int) []byte {
	if w.Text == "" {
		return []byte(strconv.Itoa(number))
	}
	return fmt.Appendf(nil, "%s-%d-%d", w.Text, partition, number)
}

func runFeeder(broker string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		var one wish
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return err
		}
		answer, err := fulfil(client, adm, one)
		if errors.Is(err, io.EOF) { // the connection was to a broker that is no more
			answer, err = fulfil(client, adm, one)
		}
		if err != nil {
			answer = object{"error": err.Error()}
		}
		emit(answer)
	}
	return scanner.Err()
}

func fulfil(client *kgo.Client, adm *kadm.Client, one wish) (object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), feederTimeout)
	defer cancel()
	switch one.Do {
	case "create":
		_, err := adm.CreateTopic(ctx, one.Partitions, 1, nil, one.Topic)
		return object{}, err
	case "produce":
		var records []*kgo.Record
		for number := one.First; number < one.First+int(one.Count); number++ {
			for partition := int32(0); partition < one.Partitions; partition++ {
				records = append(records, &kgo.Record{Topic: one.Topic, Partition: partition,
					Value: one.value(partition, number)})
			}
		}
		err := client.ProduceSync(ctx, records...).FirstErr()
		offsets := make([][2]int64, 0, len(records))
		for _, record := range records {
			offsets = append(offsets, [2]int64{int64(record.Partition), record.Offset})
		}
		return object{"offsets": offsets}, err
	case "offsets":
		offsets, err := committedOffsets(ctx, client, adm, one)
		for errors.Is(err, kerr.UnstableOffsetCommit) {
			time.Sleep(20 * time.Millisecond) // its markers are being written
			offsets, err = committedOffsets(ctx, client, adm, one)
		}
		return object{"offsets": offsets}, err
	default:
		return describeGroup(ctx, adm, one.Group)
	}
}

// committedOffsets names the partitions: asked for all, Kafka leaves out those with a pending commit
// and none before.
func committedOffsets(ctx context.Context, client *kgo.Client, adm *kadm.Client, one wish) (
	map[int32]int64, error) {
	listed, err := adm.ListTopics(ctx, one.Topic)
	if err != nil {
		return nil, err
	}
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic = one.Topic
	topic.Partitions = listed[one.Topic].Partitions.Numbers()
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = one.Group
	group.Topics = append(group.Topics, topic)
	request := kmsg.NewPtrOffsetFetchRequest()
	request.RequireStable = true
	request.Groups = append(request.Groups, group)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	answer := response.Groups[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return nil, err
	}
	offsets := map[int32]int64{}
	for _, topic := range answer.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return nil, err
			}
			if partition.Offset >= 0 {
				offsets[partition.Partition] = partition.Offset
			}
		}
	}
	return offsets, nil
}

func describeGroup(ctx context.Context, adm *kadm.Client, group string) (object, error) {
	answer, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	described := answer[group]
	members := map[string][]int32{}
	for _, member := range described.Members {
		partitions := []int32{}
		if assignment, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assignment.Topics {
				partitions = append(partitions, topic.Partitions...)
			}
		}
		slices.Sort(partitions)
		members[member.ClientID] = partitions
	}
	return object{"state": described.State, "assignor": described.Protocol, "members": members},
		described.Err
}
