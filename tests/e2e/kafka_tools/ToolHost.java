import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs the main methods of Kafka's tools one after the other in this JVM (a JVM start each would cost
 * more than the tests do). A line on stdin is: file for its stdin, file for its stdout, file for its
 * stderr, class, arguments, separated by tabs. Answered by a line with the tool's exit code.
 */
public final class ToolHost {
  /** Thrown in place of ending the JVM. Some tools catch it and print it: that must leave no trace. */
  private static final class Ended extends Error {
    private static final long serialVersionUID = 1;

    Ended() {
      super("", null, false, false);
    }

    @Override
    public void printStackTrace(PrintStream out) {}

    @Override
    public void printStackTrace(PrintWriter out) {}
  }

  private static Integer exitCode;
  private static final List<Runnable> shutdownHooks = new ArrayList<>();

  private ToolHost() {}

  /** The first call counts: the tool may catch our Ended and exit again with another code. */
  private static void exit(int code) {
    if (exitCode == null) {
      exitCode = code;
    }
    throw new Ended();
  }

  public static void main(String[] arguments) throws Exception {
    Exit.setExitProcedure((code, message) -> exit(code));
    Exit.setHaltProcedure((code, message) -> exit(code));
    Exit.setShutdownHookAdder((name, hook) -> shutdownHooks.add(hook));
    PrintStream answers = System.out;
    BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = commands.readLine()) != null; ) {
      answers.println(run(line.split("\t", -1)));
      answers.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static int run(String[] command) throws Exception {
    InputStream oldIn = System.in;
    PrintStream oldOut = System.out;
    PrintStream oldErr = System.err;
    try (InputStream in = new FileInputStream(command[0]);
        PrintStream out = new PrintStream(command[1], StandardCharsets.UTF_8);
        PrintStream err = new PrintStream(command[2], StandardCharsets.UTF_8)) {
      System.setIn(in);
      System.setOut(out);
      System.setErr(err);
      return call(Class.forName(command[3]), Arrays.copyOfRange(command, 4, command.length));
    } finally {
      System.setIn(oldIn);
      System.setOut(oldOut);
      System.setErr(oldErr);
    }
  }

  private static int call(Class<?> tool, String[] arguments) throws Exception {
    exitCode = null;
    shutdownHooks.clear();
    try {
      tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
    } catch (InvocationTargetException thrown) {
      if (exitCode == null) {
        thrown.getCause().printStackTrace();
        exitCode = 1;
      }
    }
    shutdownHooks.forEach(Runnable::run);
    return exitCode == null ? 0 : exitCode;
  }
}
