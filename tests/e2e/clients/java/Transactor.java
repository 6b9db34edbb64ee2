import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactor BROKER transact | BROKER read ISOLATION TOPIC…: transactional producers that do as they
 * are told, or a reader, on the Java client; ../README.md has the commands and answers.
 */
public final class Transactor {
  private static final Duration POLL = Duration.ofSeconds(1);
  private static final int ANSWER_WITHIN_MS = 60_000;

  /** One transactional producer, and its consumer where it has one. */
  private static final class Handle implements ConsumerRebalanceListener {
    private final KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();

    Handle(String broker, List<String> words) {
      Properties properties = new Properties();
      properties.put("bootstrap.servers", broker);
      properties.put("transactional.id", words.get(0));
      properties.put("transaction.timeout.ms", words.get(1));
      properties.put("max.block.ms", ANSWER_WITHIN_MS);
      properties.put("delivery.timeout.ms", ANSWER_WITHIN_MS);
      properties.put("linger.ms", 0);
      producer =
          new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
      if (words.size() > 2) {
        Properties reading = reading(broker, "read_committed");
        reading.put("group.id", words.get(2));
        reading.put("group.protocol", "classic");
        reading.put("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.RangeAssignor");
        reading.put("session.timeout.ms", 2000);
        reading.put("heartbeat.interval.ms", 200);
        reading.put("max.poll.records", words.get(4));
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words.get(3)), this);
      }
      producer.initTransactions();
    }

    String perform(String command, List<String> words)
        throws ExecutionException, InterruptedException {
      switch (command) {
        case "begin" -> producer.beginTransaction();
        case "send" -> {
          return send(words.get(0), words.subList(1, words.size()));
        }
        case "poll" -> {
          return poll();
        }
        case "offsets" -> producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        case "commit" -> {
          producer.commitTransaction();
          next.clear();
        }
        case "abort" -> {
          producer.abortTransaction();
          rewind();
        }
        default -> throw new KafkaException("unknown command " + command);
      }
      return "";
    }

    private String send(String topic, List<String> words)
        throws ExecutionException, InterruptedException {
      List<Future<RecordMetadata>> sent = new ArrayList<>();
      for (String word : words) {
        int colon = word.indexOf(':');
        int partition = Integer.parseInt(word.substring(0, colon));
        sent.add(producer.send(
            new ProducerRecord<>(topic, partition, null, word.substring(colon + 1))));
      }
      producer.flush();
      List<Long> offsets = new ArrayList<>();
      for (Future<RecordMetadata> one : sent) {
        offsets.add(one.get().offset());
      }
      return "\"offsets\":" + offsets;
    }

    private String poll() {
      List<String> read = new ArrayList<>();
      for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
        read.add("[" + record.partition() + "," + record.offset() + ","
            + quoted(record.value()) + "]");
        next.put(new TopicPartition(record.topic(), record.partition()),
            new OffsetAndMetadata(record.offset() + 1));
      }
      return "\"records\":" + read;
    }

    private void rewind() {
      next.clear();
      if (consumer == null) {
        return;
      }
      for (var one : consumer.committed(consumer.assignment()).entrySet()) {
        consumer.seek(one.getKey(), one.getValue() == null ? 0 : one.getValue().offset());
      }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      next.keySet().removeAll(partitions);
    }
  }

  private Transactor() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments[1].equals("read")) {
      read(arguments[0], arguments[2], Arrays.asList(arguments).subList(3, arguments.length));
    }
    Map<String, Handle> handles = new HashMap<>();
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        List<String> words = Arrays.asList(line.trim().split(" "));
        String answer = "";
        try {
          List<String> rest = words.subList(2, words.size());
          if (words.get(0).equals("init")) {
            handles.put(words.get(1), new Handle(arguments[0], rest));
          } else {
            answer = handles.get(words.get(1)).perform(words.get(0), rest);
          }
        } catch (KafkaException | ExecutionException | InterruptedException error) {
          answer = "\"error\":" + quoted(error.toString());
        }
        emit(answer);
      }
    }
    Runtime.getRuntime().halt(0); // nobody waits for what is open
  }

  private static void read(String broker, String isolation, List<String> topics) {
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading(broker, isolation),
        new StringDeserializer(), new StringDeserializer())) {
      List<TopicPartition> partitions = topics.stream()
          .flatMap(topic -> consumer.partitionsFor(topic).stream())
          .map(one -> new TopicPartition(one.topic(), one.partition())).toList();
      consumer.assign(partitions);
      while (true) {
        for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
          emit("\"topic\":" + quoted(record.topic()) + ",\"partition\":" + record.partition()
              + ",\"offset\":" + record.offset() + ",\"value\":" + quoted(record.value()));
        }
      }
    }
  }

  private static Properties reading(String broker, String isolation) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", broker);
    properties.put("isolation.level", isolation);
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", false);
    return properties;
  }

  private static void emit(String fields) {
    System.out.println("{" + fields + "}");
    System.out.flush();
  }

  private static String quoted(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
  }
}
