// One member of a group on franz-go; ../README.md has its commands and events.
package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var balancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// member's maps are written by franz-go's callbacks too, which run beside the poll loop.
type member struct {
	topic string
	mutex sync.Mutex
	owned map[int32]bool
	next  map[int32]kgo.EpochOffset
}

func runMember(broker, group, topic, assignor, session, name string) error {
	sessionMS, err := strconv.Atoi(session)
	if err != nil {
		return err
	}
	one := &member{topic: topic, owned: map[int32]bool{}, next: map[int32]kgo.EpochOffset{}}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ClientID(name),
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancers[assignor]),
		kgo.SessionTimeout(time.Duration(sessionMS)*time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(sessionMS/10)*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.OnPartitionsAssigned(one.change("assigned", true)),
		kgo.OnPartitionsRevoked(one.change("revoked", false)),
		kgo.OnPartitionsLost(one.change("revoked", false)),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)))
	if err != nil {
		return err
	}
	commands := make(chan string, 8)
	go func() {
		for scanner := bufio.NewScanner(os.Stdin); scanner.Scan(); {
			commands <- scanner.Text()
		}
		commands <- "close"
	}()
	ctx, cancel := context.WithCancel(context.Background())
	polling := make(chan struct{})
	go func() {
		defer close(polling)
		for ctx.Err() == nil {
			one.show(client.PollFetches(ctx))
		}
	}()
	for command := range commands {
		if command != "commit" {
			break
		}
		one.commit(client)
	}
	cancel()
	<-polling
	client.Close()
	one.emit(object{"event": "closed"})
	return nil
}

func (m *member) emit(fields object) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	emit(fields)
}

func (m *member) change(event string, gain bool) func(context.Context, *kgo.Client,
	map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		for _, partition := range changed[m.topic] {
			if gain {
				m.owned[partition] = true
			} else {
				delete(m.owned, partition)
			}
		}
		maps.DeleteFunc(m.next, func(partition int32, _ kgo.EpochOffset) bool {
			return gain && !m.owned[partition]
		})
		now := []int32{}
		for partition := range m.owned {
			now = append(now, partition)
		}
		slices.Sort(now)
		emit(object{"event": event, "partitions": now})
	}
}

func (m *member) show(fetches kgo.Fetches) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		emit(object{"event": "record", "partition": r.Partition, "offset": r.Offset,
			"value": string(r.Value)})
		if m.owned[r.Partition] {
			m.next[r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
		}
	})
}

func (m *member) commit(client *kgo.Client) {
	m.mutex.Lock()
	offsets := map[string]map[int32]kgo.EpochOffset{m.topic: {}}
	shown := map[string]int64{}
	for partition, at := range m.next {
		if !m.owned[partition] {
			continue
		}
		offsets[m.topic][partition] = at
		shown[fmt.Sprint(partition)] = at.Offset
	}
	m.mutex.Unlock()
	var failed error
	client.CommitOffsetsSync(context.Background(), offsets, func(_ *kgo.Client,
		_ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err != nil {
			return
		}
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				if partition.ErrorCode != 0 {
					failed = fmt.Errorf("partition %d: error %d", partition.Partition, partition.ErrorCode)
				}
			}
		}
	})
	if failed != nil {
		m.emit(object{"event": "commit failed", "error": failed.Error()})
		return
	}
	m.emit(object{"event": "committed", "offsets": shown})
}
