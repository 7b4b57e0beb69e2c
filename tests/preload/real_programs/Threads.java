// A program for the Java virtual machine whose threads allocate on the heap, outside it and in native libraries, while
// the collector runs. Prints only what must be the same each time. Open it with workload_java of
// real_workloads_languages.sh.
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Threads {
  private static final Map<Integer, Integer> together = new ConcurrentHashMap<>();

  private static byte[] textOf(int seed) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 3000; ++i) text.append("line ").append(i * seed % 997).append(" of ").append(seed).append('\n');
    return text.toString().getBytes();
  }

  // Deflater and Inflater keep their state in memory from malloc.
  private static long packed(byte[] text) throws Exception {
    CRC32 sum = new CRC32();
    for (int i = 0; i < 9; ++i) {
      Deflater deflater = new Deflater(1 + i % 9);
      deflater.setInput(text);
      deflater.finish();
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      byte[] part = new byte[4096];
      while (!deflater.finished()) out.write(part, 0, deflater.deflate(part));
      deflater.end();
      Inflater inflater = new Inflater();
      inflater.setInput(out.toByteArray());
      while (!inflater.finished()) sum.update(part, 0, inflater.inflate(part));
      inflater.end();
    }
    return sum.getValue();
  }

  private static long outside(int seed) {
    List<ByteBuffer> held = new ArrayList<>();
    long sum = 0;
    for (int i = 0; i < 300; ++i) {
      ByteBuffer buffer = ByteBuffer.allocateDirect(16 + i * 37 * seed % 20000);
      buffer.putInt(0, i * seed);
      held.add(buffer);
      if (held.size() > 40) sum += held.remove(i % 40).getInt(0);
    }
    return sum;
  }

  private static String work(int number) throws Exception {
    Map<String, List<Integer>> words = new HashMap<>();
    byte[] text = textOf(number + 3);
    for (String word : Pattern.compile("\\s+").split(new String(text)))
      words.computeIfAbsent(word, key -> new ArrayList<>()).add(word.length());
    for (int i = 0; i < 20000; ++i) together.merge(i % 500, number + 1, Integer::sum);
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    digest.update(new TreeMap<>(words).toString().getBytes());
    if (number % 3 == 0) System.gc();
    return number + ": " + words.size() + " " + packed(text) + " " + outside(number + 1) + " " + digest.digest()[0];
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(6);
    List<Future<String>> results = new ArrayList<>();
    for (int i = 0; i < 12; ++i) {
      final int number = i;
      results.add(pool.submit((Callable<String>) () -> work(number)));
    }
    for (Future<String> result : results) System.out.println(result.get());
    pool.shutdown();
    for (int i = 0; i < 200; ++i) {
      Thread thread = new Thread(() -> together.merge(-1, 1, Integer::sum));
      thread.start();
      thread.join();
    }
    System.out.println(new TreeMap<>(together).toString().hashCode() + " " + together.get(-1));
    System.out.println(IntStream.range(0, 100000).parallel().mapToObj(i -> "v" + i % 1000).collect(
        Collectors.groupingByConcurrent(v -> v, Collectors.counting())).size());
    try {
      List<byte[]> all = new ArrayList<>();
      for (;;) all.add(new byte[1 << 20]);
    } catch (OutOfMemoryError error) {
      System.out.println("the heap is full");
    }
    Process child = new ProcessBuilder("echo", "from a child").start();
    System.out.print(new String(child.getInputStream().readAllBytes()));
    System.out.println(child.waitFor());
  }
}
