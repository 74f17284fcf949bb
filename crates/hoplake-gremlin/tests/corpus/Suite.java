import java.nio.file.*;
import java.util.*;
import io.netty.buffer.*;
import org.apache.tinkerpop.gremlin.language.grammar.*;
import org.apache.tinkerpop.gremlin.process.traversal.*;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.*;
import org.apache.tinkerpop.gremlin.structure.io.binary.*;
import org.apache.tinkerpop.gremlin.structure.io.graphson.*;
import org.apache.tinkerpop.gremlin.util.ser.*;
import org.apache.tinkerpop.gremlin.structure.util.empty.EmptyGraph;
public class Suite {
  public static void main(String[] a) throws Exception {
    int n=0, bad=0;
    GraphSONMapper m3 = GraphSONMapper.build().version(GraphSONVersion.V3_0).addCustomModule(GraphSONXModuleV3.build()).create();
    GraphSONMapper m2 = GraphSONMapper.build().version(GraphSONVersion.V2_0).typeInfo(TypeInfo.PARTIAL_TYPES).addCustomModule(GraphSONXModuleV2.build()).create();
    var o3 = m3.createMapper(); var o2 = m2.createMapper();
    for (String line : Files.readAllLines(Paths.get(a[0]))) {
      try {
        Object o = GremlinQueryParser.parse(line, new GremlinAntlrToJava());
        if (!(o instanceof Traversal)) { bad++; continue; }
        Bytecode bc = ((Traversal) o).asAdmin().getBytecode();
        ByteBuf b = Unpooled.buffer();
        new GraphBinaryWriter().write(bc, new NettyBufferFactory().create(b));
        byte[] bytes = new byte[b.readableBytes()]; b.readBytes(bytes);
        StringBuilder hex = new StringBuilder(); for (byte x : bytes) hex.append(String.format("%02x", x));
        String s3="-", s2="-";
        try { s3=o3.writeValueAsString(bc);} catch(Exception e){}
        try { s2=o2.writeValueAsString(bc);} catch(Exception e){}
        System.out.println("bytecode\t" + line.replace("\t"," ") + "\t" + hex + "\t" + s3 + "\t" + s2);
        n++;
      } catch (Throwable e) { bad++; if (bad<15) System.err.println(line.substring(0,Math.min(100,line.length()))+" :: "+String.valueOf(e).split("\n")[0]); }
    }
    System.err.println(n+" ok "+bad+" bad");
  }
}
