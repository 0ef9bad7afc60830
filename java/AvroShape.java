package cloudevents_kafka.spark;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;

/**
 * What a datum of Avro must be so that Spark's {@code from_avro} reads all of it.
 *
 * Where {@code fits} is true nothing becomes null or is cut; false is a suspicion, which Python decides. The
 * work is bounded for the whole datum, as in {@code codecs/avro_budget.py}: a few bytes may have many values.
 */
final class AvroShape {
    private static final long MAX_EMPTY = 65536, FREE_STEPS = 16384, STEPS_PER_BYTE = 32;
    private static final long MANY = 1L << 40; // a number of values beyond any budget
    // The days, and the seconds, since 1970 of the years 1 to 9999, which Python has.
    private static final long FIRST_DAY = -719162L, LAST_DAY = 2932896L, SECONDS = 86400L;

    private final String kind;
    private int size = 0; // of a fixed; the number of symbols
    private BigInteger bound = null; // of a decimal
    private long least = Long.MIN_VALUE, most = Long.MAX_VALUE; // of a number
    private AvroShape[] parts = new AvroShape[0];
    private long empties = 0; // the number of values, if none of them takes a byte

    private AvroShape(Schema schema, HashMap named) {
        kind = schema.getType().getName();
        if (kind.equals("record")) {
            named.put(schema.getFullName(), this); // each name once: a schema may double at each level
            List fields = schema.getFields();
            parts = new AvroShape[fields.size()];
            for (int n = 0; n < parts.length; n++) parts[n] = part(((Schema.Field) fields.get(n)).schema(), named);
        } else if (kind.equals("union")) {
            List types = schema.getTypes();
            parts = new AvroShape[types.size()];
            for (int n = 0; n < parts.length; n++) parts[n] = part((Schema) types.get(n), named);
        } else if (kind.equals("array")) {
            parts = new AvroShape[] {part(schema.getElementType(), named)};
        } else if (kind.equals("map")) {
            parts = new AvroShape[] {part(schema.getValueType(), named)};
        } else if (kind.equals("fixed")) {
            size = schema.getFixedSize();
        } else if (kind.equals("enum")) {
            size = schema.getEnumSymbols().size();
        }
        empties = countEmpties();
        if (schema.getLogicalType() instanceof LogicalTypes.Decimal) {
            bound = BigInteger.TEN.pow(((LogicalTypes.Decimal) schema.getLogicalType()).getPrecision());
        } else if (schema.getLogicalType() != null) {
            bind(schema.getLogicalType().getName());
        }
    }

    private static AvroShape part(Schema schema, HashMap named) {
        Object known = schema.getType() == Schema.Type.RECORD ? named.get(schema.getFullName()) : null;
        return known == null ? new AvroShape(schema, named) : (AvroShape) known;
    }

    private long countEmpties() {
        if (kind.equals("null") || kind.equals("fixed") && size == 0) return 1;
        if (!kind.equals("record")) return 0;
        long count = 1;
        for (int n = 0; n < parts.length; n++) {
            if (parts[n].empties == 0) return 0;
            count = Math.min(MANY, count + parts[n].empties);
        }
        return count;
    }

    /** Bound a number by its logical type; others are numbers for Spark. */
    private void bind(String logical) {
        long units = logical.equals("date") ? 1 : !logical.contains("timestamp-") ? 0
            : logical.endsWith("-millis") ? SECONDS * 1000L : logical.endsWith("-micros") ? SECONDS * 1000000L : 0;
        if (units == 0) return;
        least = FIRST_DAY * units;
        most = (LAST_DAY + 1) * units - 1;
    }

    static AvroShape of(String schema) {
        return new AvroShape(new Schema.Parser().setValidateDefaults(false).parse(schema), new HashMap());
    }

    /** Return whether Spark reads a payload whole; false may be wrong, true never is. */
    boolean fits(byte[] payload) {
        try {
            return after(payload, 0, new Budget(payload.length)) == payload.length;
        } catch (IndexOutOfBoundsException error) {
            return false; // it ends too early
        }
    }

    /** What one datum may still cost: values, and values without bytes. */
    private static final class Budget {
        long steps, empty;

        Budget(int length) {
            steps = FREE_STEPS + STEPS_PER_BYTE * length;
            empty = Math.max(MAX_EMPTY, length);
        }

        boolean spend(long count, long empties) {
            if (count > empty / empties) return false;
            empty -= count * empties;
            return true;
        }
    }

    /** Return the index after a value, or beyond the end if it is broken, or costs too much. */
    private int after(byte[] b, int from, Budget budget) {
        int broken = b.length + 1;
        if (empties > 0) return budget.spend(1, empties) ? from : broken;
        if (--budget.steps < 0) return broken;
        if (kind.equals("boolean")) return b[from] == 0 || b[from] == 1 ? from + 1 : broken;
        if (kind.equals("float")) return from + 4;
        if (kind.equals("double")) return from + 8;
        if (kind.equals("fixed")) return size > b.length - from || !inBound(b, from, from + size) ? broken : from + size;
        if (kind.equals("record")) {
            int at = from;
            for (int n = 0; n < parts.length && at <= b.length; n++) at = parts[n].after(b, at, budget);
            return at;
        }
        if (kind.equals("array") || kind.equals("map")) return afterBlocks(b, from, kind.equals("map"), budget);
        int at = end(b, from);
        if (at < 0) return broken;
        long value = number(b, from, at);
        if (kind.equals("union")) {
            if (value < 0 || value >= parts.length) return broken;
            return parts[(int) value].empties == 1 ? at : parts[(int) value].after(b, at, budget);
        }
        if (kind.equals("enum")) return value < 0 || value >= size ? broken : at;
        if (kind.equals("int")) return value == (int) value && least <= value && value <= most ? at : broken;
        if (kind.equals("long")) return least <= value && value <= most ? at : broken;
        if (value < 0 || value > b.length - at) return broken;
        int to = at + (int) value;
        return (kind.equals("string") ? isUtf8(b, at, to) : inBound(b, at, to)) ? to : broken;
    }

    private int afterBlocks(byte[] b, int from, boolean named, Budget budget) {
        HashSet names = named ? new HashSet() : null;
        int at = from, broken = b.length + 1;
        while (true) {
            int next = end(b, at);
            if (next < 0) return broken;
            long count = number(b, at, next);
            at = next;
            if (count == 0) return at;
            if (count < 0) { // its size in bytes follows
                count = -count;
                at = end(b, at);
                if (at < 0 || count < 0) return broken;
            }
            if (!named && parts[0].empties > 0) {
                if (!budget.spend(count, parts[0].empties)) return broken;
                continue;
            }
            for (long n = 0; n < count; n++) {
                if (named) {
                    at = afterName(b, at, names);
                    if (at < 0) return broken;
                }
                at = parts[0].after(b, at, budget);
                if (at > b.length) return broken;
            }
        }
    }

    /** Return the index after a key of a map, or -1 if it is broken or there before. */
    private static int afterName(byte[] b, int from, HashSet names) {
        int next = end(b, from);
        long length = next < 0 ? -1 : number(b, from, next);
        if (length < 0 || length > b.length - next) return -1;
        int at = next + (int) length;
        if (!isUtf8(b, next, at)) return -1;
        return names.add(new String(b, next, at - next, StandardCharsets.UTF_8)) ? at : -1;
    }

    /** Return the index after a number, or -1 if it has more than 64 bits. */
    private static int end(byte[] b, int from) {
        int at = from;
        while (b[at] < 0) at++;
        return at - from > 9 || at - from == 9 && b[at] > 1 ? -1 : at + 1;
    }

    private static long number(byte[] b, int from, int to) {
        long value = 0;
        for (int at = to - 1; at >= from; at--) value = value << 7 | (b[at] & 0x7F);
        return value >>> 1 ^ -(value & 1);
    }

    private boolean inBound(byte[] b, int from, int to) {
        if (bound == null) return true;
        return from < to && new BigInteger(Arrays.copyOfRange(b, from, to)).abs().compareTo(bound) < 0;
    }

    private static boolean isUtf8(byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            int point = b[at] < 0 ? Text.codePoint(b, at, to) : 0;
            if (point < 0) return false;
            at += point == 0 ? 1 : Text.lengthOf(point);
        }
        return true;
    }
}
