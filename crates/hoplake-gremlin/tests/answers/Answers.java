// Prints what TinkerPop's reference implementation answers to traversals: `answers.txt` beside this file.
//
// A line has a traversal of TinkerGraph's modern graph, which is new for each, and its results with tabs between them, each a type and
// a text; or `error`. `#` begins a comment. Its input is the first field of each line.
//   cut -f 1 answers.txt | java -cp "gremlin-server-3.8.1/*" Answers.java > new.txt

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.OffsetDateTime;
import java.util.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import javax.script.SimpleBindings;

import org.apache.tinkerpop.gremlin.jsr223.GremlinLangScriptEngine;
import org.apache.tinkerpop.gremlin.process.traversal.*;
import org.apache.tinkerpop.gremlin.process.traversal.step.util.BulkSet;
import org.apache.tinkerpop.gremlin.structure.*;
import org.apache.tinkerpop.gremlin.tinkergraph.structure.TinkerFactory;

public class Answers {
    static String show(final Object it) {
        if (it == null) return "null";
        if (it instanceof Byte) return "byte:" + it;
        if (it instanceof Short) return "short:" + it;
        if (it instanceof Integer) return "int:" + it;
        if (it instanceof Long) return "long:" + it;
        if (it instanceof BigInteger) return "bigint:" + it;
        if (it instanceof Float) return "float:" + it;
        if (it instanceof Double) return "double:" + it;
        if (it instanceof BigDecimal) return "bigdecimal:" + ((BigDecimal) it).toPlainString();
        if (it instanceof Boolean) return "boolean:" + it;
        if (it instanceof String) return "text:" + it.toString().replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n");
        if (it instanceof OffsetDateTime) return "time:" + it;
        if (it instanceof BulkSet) return "bulk" + items((BulkSet<?>) it);
        if (it instanceof List) return "list" + items((List<?>) it);
        if (it instanceof Set) return "set" + items((Set<?>) it);
        if (it instanceof Path) return "path" + items(((Path) it).objects());
        if (it instanceof Map) {
            final List<String> all = new ArrayList<>();
            ((Map<?, ?>) it).forEach((key, value) -> all.add(show(key) + "=" + show(value)));
            return "map{" + String.join(", ", all) + "}";
        }
        if (it instanceof Vertex) return "v[" + ((Vertex) it).id() + "]";
        if (it instanceof Edge) return "e[" + ((Edge) it).outVertex().id() + "-" + ((Edge) it).label() + "->" + ((Edge) it).inVertex().id() + "]";
        if (it instanceof Property) return "property:" + ((Property<?>) it).key() + "=" + show(((Property<?>) it).value());
        return it.getClass().getSimpleName() + ":" + it;
    }

    static String items(final Collection<?> items) {
        final List<String> all = new ArrayList<>();
        items.forEach(item -> all.add(show(item)));
        return "[" + String.join(", ", all) + "]";
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
        final GremlinLangScriptEngine engine = new GremlinLangScriptEngine();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank() || line.startsWith("#")) {
                out.println(line);
                continue;
            }
            final SimpleBindings bindings = new SimpleBindings();
            bindings.put("g", AnonymousTraversalSource.traversal().withEmbedded(TinkerFactory.createModern()));
            final StringBuilder text = new StringBuilder(line);
            try {
                final Object result = engine.eval(line, bindings);
                final Iterator<?> all = result instanceof Iterator ? (Iterator<?>) result : List.of(result).iterator();
                while (all.hasNext()) text.append('\t').append(show(all.next()));
            } catch (final Throwable why) {
                text.setLength(line.length());
                text.append("\terror");
                if (arguments.length > 0) text.append(": ").append(String.valueOf(why.getMessage()).replace("\n", " "));
            }
            out.println(text);
        }
    }
}
