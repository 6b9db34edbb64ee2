import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;

/**
 * WordCount BROKER APPLICATION FROM TO STATE_DIR: counts the words of topic FROM into topic TO, at
 * least once, on the classic protocol; makes both topics where they are missing. Prints `state S` as its state changes, `error E` for what
 * ends it. Reads commands: `tasks` prints how many tasks run here, `lag` how many records of the
 * application's own group are not committed yet, `close` leaves the group and ends.
 */
public final class WordCount {
  private static final int PARTITIONS = 4;

  private final String application;
  private final KafkaStreams streams;
  private final Admin admin;

  private WordCount(String[] arguments) {
    application = arguments[1];
    Properties properties = new Properties();
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
    properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.AT_LEAST_ONCE);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 8000);
    properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 800);
    properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    StreamsBuilder builder = new StreamsBuilder();
    KStream<String, String> lines = builder.stream(arguments[2]);
    lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word)
        .count(Materialized.as("counts"))
        .toStream()
        .mapValues(count -> Long.toString(count))
        .to(arguments[3]);
    streams = new KafkaStreams(builder.build(properties), properties);
    admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
  }

  public static void main(String[] arguments) throws Exception {
    WordCount wordCount = new WordCount(arguments);
    wordCount.makeTopics(arguments[2], arguments[3]);
    wordCount.run();
    System.exit(0);
  }

  private void makeTopics(String... names) throws InterruptedException, ExecutionException {
    for (String name : names) {
      try {
        admin.createTopics(List.of(new NewTopic(name, PARTITIONS, (short) 1))).all().get();
      } catch (ExecutionException error) {
        if (!(error.getCause() instanceof TopicExistsException)) {
          throw error;
        }
      }
    }
  }

  private void run() throws IOException {
    streams.setStateListener((now, before) -> say("state " + now));
    streams.setUncaughtExceptionHandler(exception -> {
      say("error " + exception);
      return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
    });
    streams.start();
    try (BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        if (line.equals("tasks")) {
          say("tasks " + tasks());
        } else if (line.equals("lag")) {
          sayLag();
        } else {
          break;
        }
      }
    }
    streams.close(Duration.ofSeconds(60));
    admin.close();
    say("closed");
  }

  private int tasks() {
    return streams.metadataForLocalThreads().stream()
        .mapToInt(thread -> thread.activeTasks().size()).sum();
  }

  private void sayLag() {
    try {
      Map<TopicPartition, OffsetAndMetadata> committed =
          admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
      Map<TopicPartition, OffsetSpec> latest = committed.keySet().stream()
          .collect(Collectors.toMap(partition -> partition, partition -> OffsetSpec.latest()));
      long lag = 0;
      for (var end : admin.listOffsets(latest).all().get().entrySet()) {
        lag += end.getValue().offset() - committed.get(end.getKey()).offset();
      }
      say("lag " + lag);
    } catch (ExecutionException | InterruptedException error) {
      say("error " + error);
    }
  }

  private static synchronized void say(String text) {
    System.out.println(text.replace("\n", " "));
    System.out.flush();
  }
}
