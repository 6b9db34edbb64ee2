import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * MillionRecords BROKER [RECORDS]: the Java client with its defaults (idempotence on, acks=all)
 * delivers a million records of about 100 bytes to six partitions, reads them back by assign() and
 * checks every one: the offset that the delivery report named, dense from 0, in the order sent,
 * nothing doubled.
 */
public final class MillionRecords {
  private static final int PARTITIONS = 6;
  private static final String TOPIC = "java.million";
  private static final String PADDING = "x".repeat(78);
  private static final Duration POLL = Duration.ofSeconds(1);
  private static final long NO_PROGRESS_NS = Duration.ofSeconds(60).toNanos();

  private final String broker;
  private final int records;
  /** By record number: the offset its delivery report named. Record n goes to partition n % 6. */
  private final long[] reported;
  private int passed;
  private int failed;

  private MillionRecords(String broker, int records) {
    this.broker = broker;
    this.records = records;
    this.reported = new long[records];
  }

  public static void main(String[] arguments) throws Exception {
    int records = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000_000;
    MillionRecords test = new MillionRecords(arguments[0], records);
    test.createTopic();
    test.produce();
    test.consume();
    System.out.println(test.passed + " passed, " + test.failed + " failed");
    System.exit(test.failed == 0 ? 0 : 1);
  }

  private void createTopic() throws Exception {
    try (Admin admin = Admin.create(properties())) {
      NewTopic topic = new NewTopic(TOPIC, PARTITIONS, (short) 1);
      check(admin.createTopics(List.of(topic)).numPartitions(TOPIC).get() == PARTITIONS,
          "topic of six partitions made");
      // A real Kafka answers before its broker part knows the topic.
      long deadline = System.nanoTime() + NO_PROGRESS_NS;
      while (!admin.listTopics().names().get().contains(TOPIC) && System.nanoTime() < deadline) {
        Thread.sleep(50);
      }
    }
  }

  private void produce() {
    AtomicLong delivered = new AtomicLong();
    AtomicReference<Exception> failure = new AtomicReference<>();
    long begin = System.nanoTime();
    long bytes = 0;
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
        properties(), new ByteArraySerializer(), new ByteArraySerializer())) {
      for (int number = 0; number < records && failure.get() == null; number++) {
        byte[] value = value(number);
        bytes += value.length;
        int report = number;
        producer.send(new ProducerRecord<>(TOPIC, number % PARTITIONS, key(number), value),
            (metadata, exception) -> {
              if (exception != null) {
                failure.compareAndSet(null, exception);
              } else {
                reported[report] = metadata.offset();
                delivered.incrementAndGet();
              }
            });
      }
    }
    print("delivered", delivered.get(), bytes, System.nanoTime() - begin);
    check(failure.get() == null, "no delivery failed: " + failure.get());
    check(delivered.get() == records, delivered.get() + " of " + records + " delivered");
    checkReports();
  }

  /** Sent in order to each partition, so the reports must count 0, 1, 2 … there. */
  private void checkReports() {
    int wrong = 0;
    for (int number = 0; number < records; number++) {
      wrong += reported[number] == number / PARTITIONS ? 0 : 1;
    }
    check(wrong == 0, "delivery reports name dense offsets in the order sent: " + wrong + " wrong");
  }

  private void consume() {
    List<TopicPartition> partitions = new ArrayList<>();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      partitions.add(new TopicPartition(TOPIC, partition));
    }
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
        properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      long total = ends.values().stream().mapToLong(Long::longValue).sum();
      check(total == records, "end offsets add up to " + total);
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      readAll(consumer, total);
    }
  }

  private void readAll(KafkaConsumer<byte[], byte[]> consumer, long total) {
    Map<Integer, Long> next = new HashMap<>();
    long begin = System.nanoTime();
    long progress = begin;
    long read = 0;
    long bytes = 0;
    long wrong = 0;
    while (read < total && System.nanoTime() - progress < NO_PROGRESS_NS) {
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
        long expected = next.merge(record.partition(), 1L, Long::sum) - 1;
        wrong += isRecord(record, expected) ? 0 : 1;
        bytes += record.value().length;
        read++;
        progress = System.nanoTime();
      }
    }
    print("read back", read, bytes, System.nanoTime() - begin);
    check(read == records, read + " of " + records + " read back");
    check(wrong == 0, "dense, in the order sent, each as it was: " + wrong + " wrong");
    int more = consumer.poll(Duration.ofMillis(200)).count();
    check(more == 0, "nothing behind them");
  }

  private static boolean isRecord(ConsumerRecord<byte[], byte[]> record, long expectedOffset) {
    int number = (int) (expectedOffset * PARTITIONS + record.partition());
    return record.offset() == expectedOffset
        && Arrays.equals(record.key(), key(number))
        && Arrays.equals(record.value(), value(number));
  }

  private static byte[] key(int number) {
    return ("key-" + number % 1000).getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] value(int number) {
    return ("record " + number + " " + PADDING).getBytes(StandardCharsets.UTF_8);
  }

  private Properties properties() {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", broker);
    return properties;
  }

  private static void print(String what, long records, long bytes, long nanoseconds) {
    double seconds = nanoseconds / 1e9;
    System.out.printf("%s %d records in %.2f s: %.0f records/s, %.1f MB/s%n", what, records,
        seconds, records / seconds, bytes / seconds / 1e6);
  }

  private void check(boolean good, String name) {
    if (good) {
      passed++;
    } else {
      failed++;
    }
    System.out.println((good ? "ok    " : "FAIL  ") + name);
  }
}
