// Ranks in a document database, as `hoplake-bench state-stores` has them: loaded in ranges of 16,384, and changed in each superstep.
// A document is such a range, as in Hoplake's stores, or one vertex, as in Signal/Collect (2011). The server speaks MongoDB's protocol
// over loopback and keeps its documents in a file of H2; it is not mongod.

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.ReplaceOneModel;
import de.bwaldvogel.mongo.H2MongoServer;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.bson.Document;
import org.bson.types.Binary;

public class States {
    static final int RANGE = 1 << 14;

    public static void main(String[] arguments) throws Exception {
        int vertices = Integer.parseInt(arguments[0]);
        int unit = arguments[1].equals("vertex") ? 1 : RANGE;
        int supersteps = 5;
        Path folder = Files.createTempDirectory("hoplake-document-server-");
        Path file = folder.resolve("documents");
        H2MongoServer server = new H2MongoServer(file.toString());
        server.bind("127.0.0.1", 0);
        String url = "mongodb://127.0.0.1:" + server.getLocalAddress().getPort();
        double[] ranks = new SplittableRandom(1).doubles(vertices).toArray();
        try (MongoClient client = MongoClients.create(url)) {
            MongoCollection<Document> states = client.getDatabase("compare").getCollection("states");
            long began = System.nanoTime();
            for (int first = 0; first < vertices; first += RANGE) {
                List<Document> documents = new ArrayList<>();
                for (int of = first; of < Math.min(first + RANGE, vertices); of += unit) {
                    documents.add(document(of, Arrays.copyOfRange(ranks, of, Math.min(of + unit, vertices))));
                }
                states.insertMany(documents);
            }
            double load = (System.nanoTime() - began) / (double) vertices;
            double[] times = new double[supersteps];
            for (int superstep = 0; superstep < supersteps; superstep++) {
                began = System.nanoTime();
                superstep(states, vertices);
                times[superstep] = (System.nanoTime() - began) / (double) vertices;
            }
            Arrays.sort(times);
            double disk = Files.size(file) / (double) vertices;
            System.out.printf("| document database (H2), a document a %s | rank, 8 bytes | %.1f | %.1f | | %.1f |%n",
                    arguments[1], load, times[supersteps / 2], disk);
        } finally {
            server.shutdownNow();
            Files.deleteIfExists(file);
            Files.delete(folder);
        }
    }

    static Document document(int first, double[] ranks) {
        ByteBuffer bytes = ByteBuffer.allocate(ranks.length * 8);
        bytes.asDoubleBuffer().put(ranks);
        return new Document("_id", first).append("states", new Binary(bytes.array()));
    }

    // A range at a time, as Hoplake's runs read and write states.
    static void superstep(MongoCollection<Document> states, int vertices) {
        int seen = 0;
        for (int first = 0; first < vertices; first += RANGE) {
            List<ReplaceOneModel<Document>> changed = new ArrayList<>();
            var range = Filters.and(Filters.gte("_id", first), Filters.lt("_id", first + RANGE));
            for (Document found : states.find(range)) {
                ByteBuffer before = ByteBuffer.wrap(found.get("states", Binary.class).getData());
                double[] ranks = new double[before.remaining() / 8];
                before.asDoubleBuffer().get(ranks);
                for (int at = 0; at < ranks.length; at++) {
                    ranks[at] *= 0.99;
                }
                seen += ranks.length;
                int id = found.getInteger("_id");
                changed.add(new ReplaceOneModel<>(Filters.eq("_id", id), document(id, ranks)));
            }
            states.bulkWrite(changed);
        }
        if (seen != vertices) {
            throw new IllegalStateException(seen + " states of " + vertices);
        }
    }
}
