// A program whose memory lies outside Java's heap, for lib/docs/languages.md and java.sh: java -Xmx256m NativeMemory.java [THREADS]
// In three rounds the threads of a pool compress and decompress messages by zlib, copy them through direct buffers, and keep the last 64 of
// those. A rest follows each round. What it does is the same in each run.
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

class NativeMemory {
  static final sun.misc.Unsafe UNSAFE = unsafe();

  static sun.misc.Unsafe unsafe() {
    try {
      var field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (sun.misc.Unsafe) field.get(null);
    } catch (ReflectiveOperationException reason) {
      throw new IllegalStateException(reason);
    }
  }

  // As Netty frees them, and not when the collector comes by.
  static void free(ByteBuffer buffer) { UNSAFE.invokeCleaner(buffer); }

  static long messages(int number) throws Exception {
    Random random = new Random(number);
    ArrayDeque<ByteBuffer> kept = new ArrayDeque<>();
    byte[] text = new byte[64 << 10], back = new byte[64 << 10];
    for (int at = 0; at < text.length; at++) text[at] = (byte) ('a' + random.nextInt(8));
    long sum = 0;
    for (int message = 0; message < 100; message++) {
      int size = 1 + random.nextInt(random.nextInt(8) == 0 ? text.length : 4 << 10);
      ByteBuffer plain = ByteBuffer.allocateDirect(size).put(text, 0, size).flip();
      ByteBuffer packed = ByteBuffer.allocateDirect(size + 64);
      Deflater deflater = new Deflater(1 + message % 3);
      deflater.setInput(plain);
      deflater.finish();
      deflater.deflate(packed);
      deflater.end();
      Inflater inflater = new Inflater();
      inflater.setInput(packed.flip());
      int got = inflater.inflate(back);
      inflater.end();
      if (got != size || back[size - 1] != text[size - 1]) throw new IllegalStateException("another message came back");
      sum += packed.limit();
      free(plain);
      kept.add(packed);
      if (kept.size() > 64) free(kept.remove());
    }
    kept.forEach(NativeMemory::free);
    return sum;
  }

  public static void main(String[] words) throws Exception {
    int threads = words.length > 0 ? Integer.parseInt(words[0]) : 64;
    long sum = 0;
    for (int round = 0; round < 3; round++) {
      var pool = Executors.newFixedThreadPool(threads);
      var tasks = new ArrayList<Callable<Long>>();
      for (int task = 0; task < 2 * threads; task++) {
        int number = round * 1000 + task;
        tasks.add(() -> messages(number));
      }
      for (Future<Long> done : pool.invokeAll(tasks)) sum += done.get();
      pool.shutdown();
      Thread.sleep(500);
    }
    System.out.println("packed to " + sum + " bytes");
  }
}
