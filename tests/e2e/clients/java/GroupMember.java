import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * GroupMember BROKER GROUP TOPIC ASSIGNOR SESSION_MS NAME: one member of a group on the Java client
 * and the classic protocol; ../README.md has the commands that it reads and the events it prints.
 */
public final class GroupMember implements ConsumerRebalanceListener {
  private static final Map<String, String> ASSIGNORS = Map.of(
      "range", "RangeAssignor",
      "roundrobin", "RoundRobinAssignor",
      "sticky", "StickyAssignor",
      "cooperative-sticky", "CooperativeStickyAssignor");
  private static final Duration POLL = Duration.ofMillis(200);

  private final String topic;
  private final KafkaConsumer<String, String> consumer;
  private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
  private final TreeSet<Integer> owned = new TreeSet<>();
  private final Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();

  private GroupMember(String[] arguments) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("group.id", arguments[1]);
    properties.put("group.protocol", "classic");
    properties.put("partition.assignment.strategy",
        "org.apache.kafka.clients.consumer." + ASSIGNORS.get(arguments[3]));
    properties.put("session.timeout.ms", arguments[4]);
    properties.put("heartbeat.interval.ms", Integer.parseInt(arguments[4]) / 10);
    properties.put("client.id", arguments[5]);
    properties.put("enable.auto.commit", false);
    properties.put("auto.offset.reset", "earliest");
    topic = arguments[2];
    consumer = new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
  }

  public static void main(String[] arguments) {
    try {
      new GroupMember(arguments).run();
    } catch (KafkaException error) {
      emit("\"event\":\"error\",\"error\":" + quoted(error.toString()));
      System.exit(1);
    }
    System.exit(0); // the thread that reads commands does not end by itself
  }

  private void run() {
    Thread reader = new Thread(this::readCommands);
    reader.setDaemon(true);
    reader.start();
    consumer.subscribe(List.of(topic), this);
    while (true) {
      for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
        emit("\"event\":\"record\",\"partition\":" + record.partition() + ",\"offset\":"
            + record.offset() + ",\"value\":" + quoted(record.value()));
        next.put(new TopicPartition(topic, record.partition()),
            new OffsetAndMetadata(record.offset() + 1));
      }
      String command = commands.poll();
      if ("commit".equals(command)) {
        commit();
      } else if (command != null) {
        consumer.close();
        emit("\"event\":\"closed\"");
        return;
      }
    }
  }

  private void commit() {
    try {
      next.keySet().removeIf(partition -> !owned.contains(partition.partition()));
      consumer.commitSync(next);
      emit("\"event\":\"committed\",\"offsets\":" + next.entrySet().stream()
          .map(entry -> "\"" + entry.getKey().partition() + "\":" + entry.getValue().offset())
          .collect(Collectors.joining(",", "{", "}")));
    } catch (KafkaException error) {
      emit("\"event\":\"commit failed\",\"error\":" + quoted(error.toString()));
    }
  }

  private void readCommands() {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        commands.add(line);
      }
    } catch (IOException error) {
      emit("\"event\":\"error\",\"error\":" + quoted(error.toString()));
    }
    commands.add("close");
  }

  @Override
  public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
    partitions.forEach(partition -> owned.add(partition.partition()));
    next.keySet().removeIf(partition -> !owned.contains(partition.partition()));
    emit("\"event\":\"assigned\",\"partitions\":" + owned);
  }

  @Override
  public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
    partitions.forEach(partition -> owned.remove(partition.partition()));
    emit("\"event\":\"revoked\",\"partitions\":" + owned);
  }

  private static synchronized void emit(String fields) {
    System.out.println("{" + fields + "}");
    System.out.flush();
  }

  private static String quoted(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
  }
}
