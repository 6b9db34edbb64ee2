package org.apache.kafka.common.utils;

/**
 * The file connectors were last published for Kafka 4.3 and ask this class for their version; 4.4
 * has moved it away.
 */
public final class AppInfoParser {
  private AppInfoParser() {}

  public static String getVersion() {
    return "4.3.1";
  }
}
