import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * CountingCopier BROKER APPLICATION FROM TO STATE_DIR: copies topic FROM into topic TO, exactly once
 * (version 2), on the classic protocol, and says behind each value which one of its key it is, from a
 * store with a changelog. Runs until its standard input ends.
 */
public final class CountingCopier {
  private static final String STORE = "counts";

  private static final class Count extends ContextualFixedKeyProcessor<String, String, String> {
    private KeyValueStore<String, Long> counts;

    @Override
    public void init(FixedKeyProcessorContext<String, String> context) {
      super.init(context);
      counts = context.getStateStore(STORE);
    }

    @Override
    public void process(FixedKeyRecord<String, String> record) {
      Long before = counts.get(record.key());
      long count = before == null ? 1 : before + 1;
      counts.put(record.key(), count);
      context().forward(record.withValue(record.value() + ":" + count));
    }
  }

  private CountingCopier() {}

  public static void main(String[] arguments) throws IOException {
    Properties properties = new Properties();
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[1]);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
    properties.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, "classic");
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
    properties.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 600);
    properties.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    properties.put(StreamsConfig.consumerPrefix("max.poll.records"), 200);
    properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10_000);
    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(Stores.keyValueStoreBuilder(
        Stores.inMemoryKeyValueStore(STORE), Serdes.String(), Serdes.Long()));
    builder.<String, String>stream(arguments[2]).processValues(Count::new, STORE).to(arguments[3]);
    try (KafkaStreams streams = new KafkaStreams(builder.build(properties), properties)) {
      streams.setUncaughtExceptionHandler(exception -> {
        System.err.println("a thread ends: " + exception);
        return StreamThreadExceptionResponse.REPLACE_THREAD;
      });
      streams.start();
      while (System.in.read() >= 0) {
        // what is said here does not matter
      }
      streams.close(Duration.ofSeconds(30));
    }
    System.exit(0);
  }
}
