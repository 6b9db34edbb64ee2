// The feeder of groups.py: makes topics, writes records and asks for groups. One JSON object a line
// on standard input, one line back for each, {"error": …} if it failed:
//
//	{"do": "create", "topic", "partitions"}
//	{"do": "produce", "topic", "partitions", "first", "count"}: to each partition, the values
//	    first … first + count - 1, or with "text" TEXT-PARTITION-NUMBER; the partition and offset of
//	    each record
//	{"do": "offsets", "group", "topic"}: the committed offset of each partition
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
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
		answer, err := adm.FetchOffsets(ctx, one.Group)
		offsets := map[int32]int64{}
		for _, at := range answer.Offsets().Sorted() {
			if at.Topic == one.Topic {
				offsets[at.Partition] = at.At
			}
		}
		return object{"offsets": offsets}, err
	default:
		return describeGroup(ctx, adm, one.Group)
	}
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
