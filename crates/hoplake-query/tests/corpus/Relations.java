// Prints what TinkerPop's reference implementation makes of pairs of values: `relations.txt` beside this file.
//
// Each line has fields separated by tabs. `value` names a value by the number of its line. `compare`, `equals` and `order` have a
// value and a sign for each value after it and itself: `<`, `=`, `>`, or `?` for what cannot be compared. `add` and so on have two
// values and the result. A value is a type and a text.
//   java -cp "gremlin-core-3.8.1.jar:gremlin-shaded-3.8.1.jar:…" Relations.java > relations.txt

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.BiFunction;

import org.apache.tinkerpop.gremlin.process.traversal.Compare;
import org.apache.tinkerpop.gremlin.util.GremlinValueComparator;
import org.apache.tinkerpop.gremlin.util.NumberHelper;

public class Relations {
    static final List<Number> NUMBERS = Arrays.asList(
        (byte) 0, (byte) 127, (byte) -128, (byte) 7, (short) 300, (short) -32768, (short) 32767, 0, 1, -1, 3, 16777217, 2147483647,
        -2147483648, 1L, 9007199254740993L, 9223372036854775807L, -9223372036854775808L, new BigInteger("1"),
        new BigInteger("9223372036854775808"), new BigInteger("-123456789012345678901234567890"), 0.1f, 1.0f, 16777216f, 3.4e38f,
        Float.NaN, Float.POSITIVE_INFINITY, 0.0, -0.0, 0.1, 1.0, 1.5, 9007199254740992.0, 1e300, 1e308, Double.NaN,
        Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, new BigDecimal("0.1"), new BigDecimal("1.00"), new BigDecimal("3"),
        new BigDecimal("-7.25"), new BigDecimal("1E+3"));

    static String show(final Object it) {
        if (it == null) return "null:";
        if (it instanceof Byte) return "byte:" + it;
        if (it instanceof Short) return "short:" + it;
        if (it instanceof Integer) return "int:" + it;
        if (it instanceof Long) return "long:" + it;
        if (it instanceof BigInteger) return "bigint:" + it;
        if (it instanceof Float) return "float:" + it;
        if (it instanceof Double) return "double:" + it;
        if (it instanceof BigDecimal) return "bigdecimal:" + it;
        if (it instanceof Boolean) return "boolean:" + it;
        if (it instanceof String) return "text:" + it;
        if (it instanceof UUID) return "uuid:" + it;
        if (it instanceof OffsetDateTime) return "time:" + it;
        if (it instanceof Duration) return "duration:" + it;
        if (it instanceof List) return "list:" + items((Iterable<?>) it);
        if (it instanceof java.util.Set) return "set:" + items((Iterable<?>) it);
        if (it instanceof Map) {
            final List<String> all = new ArrayList<>();
            ((Map<?, ?>) it).forEach((key, value) -> all.add(show(key) + ";" + show(value)));
            return "map:" + String.join(";", all);
        }
        throw new IllegalArgumentException(it.getClass().toString());
    }

    static String items(final Iterable<?> items) {
        final List<String> all = new ArrayList<>();
        items.forEach(item -> all.add(show(item)));
        return String.join(";", all);
    }

    static void line(final String operation, final Object a, final Object b, final BiFunction<Object, Object, Object> f) {
        String result;
        try {
            result = show(f.apply(a, b));
        } catch (final RuntimeException wrong) {
            result = "error:";
        }
        System.out.println(operation + "\t" + show(a) + "\t" + show(b) + "\t" + result);
    }

    static Object map(final Object... all) {
        final Map<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < all.length; i += 2) map.put(all[i], all[i + 1]);
        return map;
    }

    static char sign(final String relation, final Object a, final Object b) {
        if (relation.equals("equals")) return Compare.eq.test(a, b) ? '=' : '!';
        final boolean ordered = relation.equals("order");
        if (!ordered && !GremlinValueComparator.comparable(a, b)) return '?';
        final int order = (ordered ? GremlinValueComparator.ORDERABILITY : GremlinValueComparator.COMPARABILITY).compare(a, b);
        return order < 0 ? '<' : order > 0 ? '>' : '=';
    }

    static void relations(final List<Object> values) {
        values.forEach(value -> System.out.println("value\t" + show(value)));
        for (final String relation : Arrays.asList("compare", "equals", "order")) {
            for (int i = 0; i < values.size(); i++) {
                final StringBuilder signs = new StringBuilder();
                for (int j = i; j < values.size(); j++) signs.append(sign(relation, values.get(i), values.get(j)));
                System.out.println(relation + "\t" + i + "\t" + signs);
            }
        }
    }

    static void arithmetic() {
        for (int i = 0; i < NUMBERS.size(); i++) {
            // A sample of the pairs, with one operation for each.
            for (int j = i % 3; j < NUMBERS.size(); j += 3) {
                final Number a = NUMBERS.get(i), b = NUMBERS.get(j);
                switch ((i * 5 + j / 3) % 6) {
                    case 0: line("add", a, b, (x, y) -> NumberHelper.add((Number) x, (Number) y)); break;
                    case 1: line("subtract", a, b, (x, y) -> NumberHelper.sub((Number) x, (Number) y)); break;
                    case 2: line("multiply", a, b, (x, y) -> NumberHelper.mul((Number) x, (Number) y)); break;
                    case 3: line("divide", a, b, (x, y) -> NumberHelper.div((Number) x, (Number) y)); break;
                    case 4: line("min", a, b, (x, y) -> NumberHelper.min((Number) x, (Number) y)); break;
                    default: line("max", a, b, (x, y) -> NumberHelper.max((Number) x, (Number) y));
                }
            }
        }
    }

    public static void main(final String[] none) {
        arithmetic();
        final List<Object> values = new ArrayList<>(NUMBERS);
        values.addAll(Arrays.asList(null, true, false, "", "a", "b", "é",
            UUID.fromString("11111111-1111-1111-1111-111111111111"), UUID.fromString("21111111-1111-1111-1111-111111111111"),
            OffsetDateTime.parse("2024-01-01T00:00:00Z"), OffsetDateTime.parse("2024-01-01T00:30:00Z"),
            Duration.ofSeconds(5), Arrays.asList(), Arrays.asList(1, 2), Arrays.asList(1.0, 2.0), Arrays.asList(1, "a"),
            Arrays.asList(2, 1), Arrays.asList(1, 2, 3), Arrays.asList(Double.NaN), new LinkedHashSet<>(Arrays.asList(1, 2)),
            new LinkedHashSet<>(Arrays.asList(2.0, 1.0)), new LinkedHashSet<>(Arrays.asList("a", 1)),
            new LinkedHashSet<>(Arrays.asList(1, "a")), map(), map("a", 1), map("a", 1.0, "b", 2), map("b", 2, "a", 1),
            map(1, "a")));
        relations(values);
    }
}
