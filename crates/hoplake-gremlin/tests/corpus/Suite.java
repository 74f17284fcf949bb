// Prints the bytecode of traversals, one a line of a file, as the Java classes of TinkerPop 3.8.1 parse and write them: GraphBinary 1 in
// hexadecimal digits, GraphSON 3 and 2. What it makes of the texts of TinkerPop's suite has 2 MB and is not kept:
//   java -cp "gremlin-core-3.8.1.jar:gremlin-language-3.8.1.jar:…" Suite.java texts.txt > suite.txt
//   HOPLAKE_GREMLIN_SUITE=suite.txt cargo test -p hoplake-gremlin --test codecs -- --ignored

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.tinkerpop.gremlin.language.grammar.GremlinAntlrToJava;
import org.apache.tinkerpop.gremlin.language.grammar.GremlinQueryParser;
import org.apache.tinkerpop.gremlin.process.traversal.Bytecode;
import org.apache.tinkerpop.gremlin.process.traversal.Traversal;
import org.apache.tinkerpop.gremlin.structure.io.binary.GraphBinaryWriter;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONMapper;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONVersion;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONXModuleV2;
import org.apache.tinkerpop.gremlin.structure.io.graphson.GraphSONXModuleV3;
import org.apache.tinkerpop.gremlin.util.ser.NettyBufferFactory;
import org.apache.tinkerpop.shaded.jackson.databind.ObjectMapper;

public class Suite {
    static final ObjectMapper V3 = GraphSONMapper.build().version(GraphSONVersion.V3_0)
        .addCustomModule(GraphSONXModuleV3.build()).create().createMapper();
    static final ObjectMapper V2 = GraphSONMapper.build().version(GraphSONVersion.V2_0)
        .addCustomModule(GraphSONXModuleV2.build()).create().createMapper();

    static String json(final ObjectMapper mapper, final Object value) {
        try {
            return mapper.writeValueAsString(value);
        } catch (final Exception none) {
            return "-";
        }
    }

    public static void main(final String[] files) throws Exception {
        int refused = 0;
        for (final String text : Files.readAllLines(Paths.get(files[0]))) {
            final Bytecode bytecode;
            try {
                bytecode = ((Traversal<?, ?>) GremlinQueryParser.parse(text, new GremlinAntlrToJava())).asAdmin().getBytecode();
            } catch (final RuntimeException wrong) {
                // Most have variables, whose values are not in the text.
                refused++;
                continue;
            }
            final ByteBuf buffer = Unpooled.buffer();
            new GraphBinaryWriter().write(bytecode, new NettyBufferFactory().create(buffer));
            final StringBuilder digits = new StringBuilder();
            while (buffer.isReadable()) digits.append(String.format("%02x", buffer.readByte()));
            System.out.println("bytecode\t" + text + "\t" + digits + "\t" + json(V3, bytecode) + "\t" + json(V2, bytecode));
        }
        System.err.println(refused + " refused");
    }
}
