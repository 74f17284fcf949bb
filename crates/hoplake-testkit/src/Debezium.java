import io.debezium.embedded.KafkaConnectUtil;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import io.debezium.engine.spi.OffsetCommitPolicy;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.storage.FileOffsetBackingStore;

// Follows a database with Debezium's engine, and writes each change to a file or to Kafka. The argument is a file with the
// engine's properties, and with `output.file`, or those of Kafka's producer, each with `kafka.` before it.
public class Debezium {
    // Takes the changes of a batch, and returns when they are kept.
    interface Output {
        void write(List<ChangeEvent<String, String>> changes) throws Exception;
    }

    // Offsets in a file that is whole whenever the process is killed. Kafka's own store writes over its file, and takes half of one for
    // none; then everything would be copied again.
    public static class Offsets extends FileOffsetBackingStore {
        private Path file;
        private Path whole;

        public Offsets() {
            super(KafkaConnectUtil.converterForOffsetStore());
        }

        @Override
        public void configure(WorkerConfig settings) {
            super.configure(settings);
            file = Path.of(settings.getString("offset.storage.file.filename"));
            whole = Path.of(file + ".whole");
        }

        @Override
        public synchronized void start() {
            try {
                if (Files.exists(whole)) Files.copy(whole, file, StandardCopyOption.REPLACE_EXISTING);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
            super.start();
        }

        @Override
        protected void save() {
            super.save();
            try {
                Path copy = Files.copy(file, Path.of(file + ".copy"), StandardCopyOption.REPLACE_EXISTING);
                Files.move(copy, whole, StandardCopyOption.ATOMIC_MOVE);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        try (var settings = Files.newBufferedReader(Path.of(arguments[0]))) {
            properties.load(settings);
        }
        String file = properties.getProperty("output.file");
        Output output = file != null ? toFile(file) : toKafka(properties);
        var copied = new AtomicBoolean();
        var engine = DebeziumEngine.create(Json.class)
            .using(properties)
            .using(Debezium.class.getClassLoader())
            // Each second, and at once when rows were copied: without the offset of the last of them it would copy them again.
            .using((OffsetCommitPolicy) (count, time) -> copied.getAndSet(false) || time.toMillis() > 1000)
            .using((success, message, error) -> {
                System.err.println(message);
                if (error != null) error.printStackTrace();
            })
            .notifying((changes, committer) -> {
                try {
                    output.write(changes);
                } catch (Exception failed) {
                    // The engine might go on with the next batch.
                    failed.printStackTrace();
                    Runtime.getRuntime().halt(1);
                }
                for (var change : changes) {
                    committer.markProcessed(change);
                    if (change.value() != null && change.value().contains("\"op\":\"r\"")) copied.set(true);
                }
                committer.markBatchFinished();
            })
            .build();
        engine.run();
        System.exit(1);
    }

    static Output toFile(String path) throws IOException {
        var file = new RandomAccessFile(path, "rw");
        // A line that was being written when the process was killed is written again, since its offset was not.
        long end = file.length();
        for (; end > 0; end--) {
            file.seek(end - 1);
            if (file.read() == '\n') break;
        }
        file.setLength(end);
        file.seek(end);
        return changes -> {
            var lines = new StringBuilder();
            for (var change : changes) {
                // The null after a deletion is about its key, which a file does not have.
                if (change.value() != null) lines.append(change.value()).append('\n');
            }
            file.write(lines.toString().getBytes(StandardCharsets.UTF_8));
        };
    }

    static Output toKafka(Properties properties) {
        var settings = new Properties();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith("kafka.")) settings.put(name.substring("kafka.".length()), properties.getProperty(name));
        }
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        return changes -> {
            List<Future<?>> sent = new ArrayList<>();
            for (var change : changes) {
                sent.add(producer.send(new ProducerRecord<>(change.destination(), change.key(), change.value())));
            }
            for (var one : sent) one.get();
        };
    }
}
