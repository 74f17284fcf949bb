// Prints what a Gremlin Server of TinkerPop 3.8.1 writes: `server.txt` beside this file.
//
// Each line has the kind, a name, the bytes of GraphBinary 1 in hexadecimal digits, and GraphSON 3 and 2, separated by tabs.
//   java -cp "gremlin-core-3.8.1.jar:gremlin-util-3.8.1.jar:gremlin-shaded-3.8.1.jar:…" Wire.java > server.txt

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.tinkerpop.gremlin.process.remote.traversal.DefaultRemoteTraverser;
import org.apache.tinkerpop.gremlin.process.traversal.Merge;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.BulkSet;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.MutablePath;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.Tree;
import org.apache.tinkerpop.gremlin.process.traversal.util.MutableMetrics;
import org.apache.tinkerpop.gremlin.structure.Direction;
import org.apache.tinkerpop.gremlin.structure.T;
import org.apache.tinkerpop.gremlin.structure.io.binary.GraphBinaryWriter;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONMapper;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONVersion;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONXModuleV2;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONXModuleV3;
import org.apache.tinkerpop.gremlin.structure.util.detached.DetachedEdge;
import org.apache.tinkerpop.gremlin.structure.util.detached.DetachedProperty;
import org.apache.tinkerpop.gremlin.structure.util.detached.DetachedVertex;
import org.apache.tinkerpop.gremlin.structure.util.detached.DetachedVertexProperty;
import org.apache.tinkerpop.gremlin.structure.util.reference.ReferenceEdge;
import org.apache.tinkerpop.gremlin.structure.util.reference.ReferenceVertex;
import org.apache.tinkerpop.gremlin.structure.util.reference.ReferenceVertexProperty;
import org.apache.tinkerpop.gremlin.util.message.ResponseMessage;
import org.apache.tinkerpop.gremlin.util.message.ResponseStatusCode;
import org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV2;
import org.apache.tinkerpop.gremlin.util.ser.GraphSONMessageSerializerV3;
import org.apache.tinkerpop.gremlin.util.ser.NettyBufferFactory;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

public class Wire {
    static final UUID ID = UUID.fromString("41d2e28a-20a4-4ab0-b379-d810dede3786");
    static final ObjectMapper V3 = GraphSONMapper.build().version(GraphSONVersion.V3_0)
        .addCustomModule(GraphSONXModuleV3.build()).create().createMapper();
    static final ObjectMapper V2 = GraphSONMapper.build().version(GraphSONVersion.V2_0)
        .addCustomModule(GraphSONXModuleV2.build()).create().createMapper();

    static String hex(final ByteBuf buffer) {
        final StringBuilder digits = new StringBuilder();
        while (buffer.isReadable()) digits.append(String.format("%02x", buffer.readByte()));
        return digits.toString();
    }

    static String json(final ObjectMapper mapper, final Object value) {
        try {
            return mapper.writeValueAsString(value);
        } catch (final Exception none) {
            return "-";
        }
    }

    static String second(final String third, final String second) {
        return second.equals(third) ? "=" : second;
    }

    static void value(final String name, final Object value) throws Exception {
        final ByteBuf buffer = Unpooled.buffer();
        new GraphBinaryWriter().write(value, new NettyBufferFactory().create(buffer));
        System.out.println("value\t" + name + "\t" + hex(buffer) + "\t" + json(V3, value) + "\t" + second(json(V3, value), json(V2, value)));
    }

    static void response(final String name, final ResponseMessage response) throws Exception {
        System.out.println("response\t" + name
            + "\t" + hex(new GraphBinaryMessageSerializerV1().serializeResponseAsBinary(response, UnpooledByteBufAllocator.DEFAULT))
            + "\t" + new GraphSONMessageSerializerV3().serializeResponseAsString(response, UnpooledByteBufAllocator.DEFAULT)
            + "\t" + new GraphSONMessageSerializerV2().serializeResponseAsString(response, UnpooledByteBufAllocator.DEFAULT));
    }

    static Map<Object, Object> map(final Object... all) {
        final Map<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < all.length; i += 2) map.put(all[i], all[i + 1]);
        return map;
    }

    public static void main(final String[] none) throws Exception {
        for (final Object it : Arrays.asList(null, true, (byte) -5, (short) -300, 42, 42L, new BigInteger("-129"),
            new BigInteger("128"), 1.5f, Float.NaN, 1.5, 1e300, Double.NaN, Double.NEGATIVE_INFINITY, new BigDecimal("-3.140"), 'é', "héllo",
            ID)) value("scalar " + it, it);
        value("bytes", ByteBuffer.wrap(new byte[] {0, 1, -1}));
        value("time", OffsetDateTime.parse("2024-02-29T12:30:15.250000001+01:00"));
        value("early time", OffsetDateTime.parse("1900-01-01T00:00:00.5-18:00"));
        value("date", new Date(1481750076295L));
        value("instant", Instant.parse("2024-02-29T12:30:15.25Z"));
        value("zoned time", ZonedDateTime.parse("2024-02-29T12:30:15.25+01:00"));
        value("duration", Duration.ofSeconds(90, 5));
        value("negative duration", Duration.ofSeconds(-2, 5));
        value("list", Arrays.asList(1, "a", null, Arrays.asList(2.0)));
        value("set", new LinkedHashSet<>(Arrays.asList(7, "b")));
        value("map", map("a", 1, 2, Arrays.asList(true), T.id, Collections.emptyMap()));
        value("text map", map("a", 1, "b", map("c", 2L)));
        final BulkSet<Object> bulk = new BulkSet<>();
        bulk.add("a", 3);
        value("bulk set", bulk);
        value("T", T.label);
        value("direction", Direction.OUT);
        value("merge", Merge.onCreate);

        final DetachedVertexProperty<Object> name = DetachedVertexProperty.build().setId(9L).setLabel("name").setValue("marko")
            .addProperty(new DetachedProperty<>("since", 2010)).create();
        final DetachedVertex marko = DetachedVertex.build().setId(1).setLabel("person").addProperty(name).create();
        final DetachedVertex vadas = DetachedVertex.build().setId("two").setLabel("person").create();
        final DetachedEdge knows = DetachedEdge.build().setId(7L).setLabel("knows").setOutV(marko).setInV(vadas)
            .addProperty(new DetachedProperty<>("weight", 0.5)).create();
        value("vertex", marko);
        value("vertex without properties", vadas);
        value("reference to a vertex", new ReferenceVertex(1, "person"));
        value("edge", knows);
        value("reference to an edge", new ReferenceEdge(knows));
        value("reference to a vertex property", new ReferenceVertexProperty<>(name));
        value("property", new DetachedProperty<>("weight", 0.5));
        final MutablePath path = (MutablePath) MutablePath.make();
        path.extend(new ReferenceVertex(1, "person"), new LinkedHashSet<>(Arrays.asList("a")));
        path.extend(5, Collections.emptySet());
        value("path", path);
        final Tree<Object> tree = new Tree<>(), below = new Tree<>();
        below.put("b", new Tree<>());
        tree.put("a", below);
        value("tree", tree);
        value("traverser", new DefaultRemoteTraverser<>(3, 7L));

        response("results", ResponseMessage.build(ID).code(ResponseStatusCode.PARTIAL_CONTENT)
            .statusAttributes(Collections.singletonMap("host", "/127.0.0.1:5"))
            .result(Arrays.asList(new DefaultRemoteTraverser<>(new ReferenceVertex(1, "person"), 2L))).create());
        response("nothing", ResponseMessage.build(ID).code(ResponseStatusCode.NO_CONTENT).create());
        response("error", ResponseMessage.build(ID).code(ResponseStatusCode.SERVER_ERROR).statusMessage("it \"failed\"")
            .statusAttributes(Collections.singletonMap("exceptions", Arrays.asList("java.lang.X"))).create());
    }
}
