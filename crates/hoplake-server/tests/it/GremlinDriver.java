// Asks a server as users of the driver for Java do. Arguments: host, port, token. The graph `g` has people; `new` begins empty.

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.apache.tinkerpop.gremlin.driver.Client;
import org.apache.tinkerpop.gremlin.driver.Cluster;
import org.apache.tinkerpop.gremlin.driver.RequestOptions;
import org.apache.tinkerpop.gremlin.driver.Result;
import org.apache.tinkerpop.gremlin.driver.ResultSet;
import org.apache.tinkerpop.gremlin.driver.exception.ResponseException;
import org.apache.tinkerpop.gremlin.driver.remote.DriverRemoteConnection;
import org.apache.tinkerpop.gremlin.process.traversal.AnonymousTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.Path;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.__;
import org.apache.tinkerpop.gremlin.structure.Edge;
import org.apache.tinkerpop.gremlin.structure.Element;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.Transaction;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.apache.tinkerpop.gremlin.util.ser.Serializers;

public class GremlinDriver {
    static final String ENDLESS = "g.inject(1).repeat(__.identity()).times(1000000000)";
    static final List<Integer> MANY = IntStream.range(0, 5000).boxed().toList();

    static String host;
    static int port;
    static String token;

    static Cluster.Builder settings(Serializers serializer, String password) {
        return Cluster.build(host).port(port).path("/gremlin").serializer(serializer).credentials("ann", password);
    }

    static GraphTraversalSource source(Cluster cluster, String graph) {
        return AnonymousTraversalSource.traversal().with(DriverRemoteConnection.using(cluster, graph));
    }

    static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) throw new AssertionError("found " + found + ", not " + expected);
    }

    // Whether a call fails with this status, exception and message.
    static void fails(int status, String exception, String words, Callable<?> call) {
        Throwable thrown;
        try {
            thrown = new AssertionError("no failure, and not " + status + ", but " + call.call());
        } catch (Exception failure) {
            thrown = failure;
        }
        var cause = thrown;
        while (cause != null && !(cause instanceof ResponseException)) cause = cause.getCause();
        if (!(cause instanceof ResponseException response)) throw new AssertionError("not " + status, thrown);
        equal(response.getResponseStatusCode().getValue(), status);
        equal(response.getRemoteExceptionHierarchy().orElseThrow(), List.of("hoplake." + exception + "Exception"));
        if (!response.getMessage().contains(words)) throw new AssertionError(response.getMessage());
    }

    static List<Object> all(ResultSet results) {
        return results.stream().map(Result::getObject).toList();
    }

    // Properties of an element by their names.
    static Map<String, Object> values(Element element) {
        var values = new TreeMap<String, Object>();
        element.properties().forEachRemaining(property -> values.put(property.key(), property.value()));
        return values;
    }

    // Values that come back as they were sent.
    static List<Object> samples(Serializers serializer) {
        var samples = new ArrayList<Object>(Arrays.asList(
            null, true, (byte) -1, (short) 2, 3, -(1L << 40), 1.5f, 2.5, Double.NaN, Double.NEGATIVE_INFINITY,
            BigInteger.TWO.pow(70), new BigDecimal("1.250"), "ä€😀", 'c', new UUID(1, 2),
            OffsetDateTime.of(2020, 2, 29, 1, 2, 3, 4_000_000, ZoneOffset.UTC), Duration.ofMillis(1500),
            List.of(1, List.of("a"))));
        // GraphSON 2 has neither.
        if (serializer != Serializers.GRAPHSON_V2) samples.addAll(List.of(Set.of(1, 2), Map.of(1, "a", "b", 2L)));
        return samples;
    }

    static void reads(Cluster cluster, Serializers serializer) throws Exception {
        var g = source(cluster, "g");
        equal(g.V().hasLabel("Person").count().toList(), List.of(256L));
        equal(g.V("Person:1").values("name").next(), "P, 1");
        equal(g.V().hasLabel("Nobody").hasNext(), false);
        equal(g.inject(MANY.toArray()).toList(), MANY);
        equal(g.inject("a", "a", "b").toList(), List.of("a", "a", "b"));
        for (Object sample : samples(serializer)) {
            equal(g.inject(sample).toList(), Collections.singletonList(sample));
        }
        if (serializer == Serializers.GRAPHBINARY_V1) {
            var bytes = ByteBuffer.wrap(new byte[] {0, -1});
            equal(g.inject(bytes).next(), bytes);
        }

        Client client = cluster.connect().alias("g");
        equal(all(client.submit("g.V().hasLabel(kind).count()", Map.of("kind", "Person"))), List.of(256L));
        var options = RequestOptions.build().batchSize(100).addParameter("numbers", MANY).create();
        equal(all(client.submit("g.inject(numbers).unfold()", options)), MANY);
        // Without an alias it is `g`.
        equal(all(cluster.connect().submit("g.V().hasLabel('Person').count()")), List.of(256L));
    }

    static void writes(Cluster cluster, String name) throws Exception {
        var g = source(cluster, "new");

        // Each a request, and a commit.
        Vertex ann = g.addV("person").property("name", name).property("age", 30).property("size", 1.5).next();
        Edge knows = g.V(ann.id()).as("ann").addV("person").property("name", name + " 2")
            .addE("knows").from("ann").property("since", 2020L).next();
        Vertex bo = knows.inVertex();

        equal(ann.label(), "person");
        equal(values(ann), Map.of("name", name, "age", 30, "size", 1.5));
        equal(List.of(knows.label(), knows.outVertex()), List.of("knows", ann));
        equal(values(knows), Map.of("since", 2020L));
        equal(values(g.with("materializeProperties", "tokens").V(ann).next()), Map.of());

        Path path = g.V(ann).as("a").out("knows").as("b").path().by("name").next();
        equal(path.objects(), List.of(name, name + " 2"));
        equal(path.labels(), List.of(Set.of("a"), Set.of("b")));
        equal(g.V(ann).outE("knows").inV().path().next().objects(), List.of(ann, knows, bo));

        equal(g.V(ann, bo).groupCount().by("name").next(), Map.of(name, 1L, name + " 2", 1L));
        equal(g.V(bo).valueMap().next(), Map.of("name", List.of(name + " 2")));
        // Keys of maps are texts in GraphSON 2.
        boolean texts = name.equals(Serializers.GRAPHSON_V2.name());
        equal(g.V(bo).elementMap().next(), Map.of(
            texts ? "id" : T.id, bo.id(), texts ? "label" : T.label, "person", "name", name + " 2"));
    }

    static void transacts(Cluster cluster, String name) throws Exception {
        var g = source(cluster, "new");
        for (boolean commits : new boolean[] {false, true}) {
            Transaction transaction = g.tx();
            GraphTraversalSource within = transaction.begin();
            within.addV("person").property("name", name + " 3").iterate();
            equal(within.V().has("name", name + " 3").count().next(), 1L);
            equal(g.V().has("name", name + " 3").count().next(), 0L);
            if (commits) transaction.commit(); else transaction.rollback();
            equal(g.V().has("name", name + " 3").count().next(), commits ? 1L : 0L);
        }

        Transaction first = g.tx();
        Transaction second = g.tx();
        for (var transaction : List.of(first, second)) {
            GraphTraversalSource within = transaction.begin();
            within.V().has("name", name + " 3").property("age", 7).iterate();
        }
        first.commit();
        fails(500, "Conflict", "changed", () -> {
            second.commit();
            return null;
        });

        // A session of texts, of which the second transaction is not committed.
        Client session = cluster.connect("session of " + name).alias("new");
        var named = Map.<String, Object>of("name", name + " 4");
        session.submit("g.addV('person').property('name', name)", named).all().get();
        session.submit("g.tx().commit()").all().get();
        session.submit("g.addV('person').property('name', name)", named).all().get();
        session.close();
        equal(g.V().has("name", name + " 4").count().next(), 1L);
    }

    static void errs(Cluster cluster, Serializers serializer) throws Exception {
        var g = source(cluster, "new");
        fails(595, "Fail", "enough", () -> g.inject(1).fail("enough").iterate());
        fails(500, "Query", "sum", () -> g.inject("a").sum().next());
        fails(498, "Step", "`io`", () -> g.io("file").read().iterate());
        fails(598, "Timeout", "time",
            () -> g.with("evaluationTimeout", 50L).inject(1).repeat(__.identity()).times(1_000_000_000).iterate());

        Client client = cluster.connect().alias("new");
        fails(597, "Syntax", "line 1, column 5", () -> client.submit("g.V(").all().get());
        fails(498, "Step", "`foo`", () -> client.submit("g.V().foo()").all().get());
        fails(500, "Query", "sum", () -> client.submit("g.inject('a').sum()").all().get());
        var timeout = RequestOptions.build().timeout(50).create();
        fails(598, "Timeout", "time", () -> client.submit(ENDLESS, timeout).all().get());
        // It is still there.
        equal(all(client.submit("g.inject(1)")), List.of(1));
        Client lost = cluster.connect().alias("nothing");
        fails(499, "NotFound", "\"nothing\"", () -> lost.submit("g.V()").all().get());

        Cluster stranger = settings(serializer, "wrong").create();
        Client refused = stranger.connect().alias("new");
        fails(401, "Unauthenticated", "token", () -> refused.submit("g.V()").all().get());
        stranger.close();
    }

    // A query whose client closes its connection: the test looks whether it ends.
    static void leaves() throws Exception {
        Cluster cluster = settings(Serializers.GRAPHBINARY_V1, token).maxWaitForClose(100).create();
        Client client = cluster.connect().alias("new");
        System.out.println("ready");
        System.in.read();
        var answer = client.submit(ENDLESS).all();
        System.in.read();
        cluster.close();
        if (!answer.isCompletedExceptionally()) throw new AssertionError("an answer");
        while (System.in.read() >= 0) {}
    }

    static void asks() throws Exception {
        for (var serializer : List.of(Serializers.GRAPHBINARY_V1, Serializers.GRAPHSON_V3, Serializers.GRAPHSON_V2)) {
            Cluster cluster = settings(serializer, token).create();
            reads(cluster, serializer);
            writes(cluster, serializer.name());
            transacts(cluster, serializer.name());
            errs(cluster, serializer);
            cluster.close();
        }
        leaves();
    }

    public static void main(String[] arguments) {
        host = arguments[0];
        port = Integer.parseInt(arguments[1]);
        token = arguments[2];
        try {
            asks();
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        // The driver's threads may still be there.
        System.exit(0);
    }
}
