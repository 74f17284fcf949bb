// Ranks in Berkeley DB Java Edition, as `hoplake-bench state-stores` has them: loaded in ranges of 16,384, and changed in each
// superstep. A record is such a range, as in Hoplake's stores, or one vertex, as in Signal/Collect (2011).

import com.sleepycat.je.Cursor;
import com.sleepycat.je.Database;
import com.sleepycat.je.DatabaseConfig;
import com.sleepycat.je.DatabaseEntry;
import com.sleepycat.je.Environment;
import com.sleepycat.je.EnvironmentConfig;
import com.sleepycat.je.LockMode;
import com.sleepycat.je.OperationStatus;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SplittableRandom;

public class States {
    static final int RANGE = 1 << 14;

    public static void main(String[] arguments) throws Exception {
        int vertices = Integer.parseInt(arguments[0]);
        int unit = arguments[1].equals("vertex") ? 1 : RANGE;
        long cacheBytes = Long.parseLong(arguments[2]) << 20;
        int supersteps = 5;
        Path folder = Files.createTempDirectory("hoplake-berkeley-db-");
        EnvironmentConfig environmentConfig = new EnvironmentConfig();
        environmentConfig.setAllowCreate(true).setCacheSize(cacheBytes);
        DatabaseConfig databaseConfig = new DatabaseConfig();
        // States are computed again after a crash: nothing waits for the disk.
        databaseConfig.setAllowCreate(true).setDeferredWrite(true);
        double[] ranks = new SplittableRandom(1).doubles(vertices).toArray();
        try (Environment environment = new Environment(folder.toFile(), environmentConfig);
                Database database = environment.openDatabase(null, "states", databaseConfig)) {
            long began = System.nanoTime();
            for (int first = 0; first < vertices; first += unit) {
                database.put(null, key(first), states(ranks, first, Math.min(unit, vertices - first)));
            }
            double load = (System.nanoTime() - began) / (double) vertices;
            double[] times = new double[supersteps];
            for (int superstep = 0; superstep < supersteps; superstep++) {
                began = System.nanoTime();
                superstep(database, vertices);
                times[superstep] = (System.nanoTime() - began) / (double) vertices;
            }
            Arrays.sort(times);
            began = System.nanoTime();
            database.sync();
            double end = (System.nanoTime() - began) / (double) vertices;
            double disk = Arrays.stream(folder.toFile().listFiles()).mapToLong(File::length).sum() / (double) vertices;
            double memory = environment.getStats(null).getCacheTotalBytes() / (double) vertices;
            System.out.printf("| Berkeley DB JE, a record a %s | rank, 8 bytes | %.1f | %.1f | %.1f | %.1f | (end %.1f)%n",
                    arguments[1], load, times[supersteps / 2], memory, disk, end);
        } finally {
            for (File file : folder.toFile().listFiles()) {
                file.delete();
            }
            Files.delete(folder);
        }
    }

    static DatabaseEntry key(int first) {
        // Big-endian, so that keys are in the order of vertices.
        return new DatabaseEntry(ByteBuffer.allocate(4).putInt(first).array());
    }

    static DatabaseEntry states(double[] ranks, int first, int count) {
        ByteBuffer bytes = ByteBuffer.allocate(count * 8);
        bytes.asDoubleBuffer().put(ranks, first, count);
        return new DatabaseEntry(bytes.array());
    }

    static void superstep(Database database, int vertices) {
        DatabaseEntry key = new DatabaseEntry();
        DatabaseEntry states = new DatabaseEntry();
        int seen = 0;
        try (Cursor cursor = database.openCursor(null, null)) {
            while (cursor.getNext(key, states, LockMode.RMW) == OperationStatus.SUCCESS) {
                ByteBuffer before = ByteBuffer.wrap(states.getData(), states.getOffset(), states.getSize());
                ByteBuffer after = ByteBuffer.allocate(states.getSize());
                while (before.hasRemaining()) {
                    after.putDouble(before.getDouble() * 0.99);
                    seen++;
                }
                cursor.putCurrent(new DatabaseEntry(after.array()));
            }
        }
        if (seen != vertices) {
            throw new IllegalStateException(seen + " states of " + vertices);
        }
    }
}
