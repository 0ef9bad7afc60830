package cloudevents_kafka.spark;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.LogicalTypes;

/**
 * What a datum of Avro must be so that Spark's {@code from_avro} reads all of it.
 *
 * Where {@code fits} is true nothing becomes null or is cut; false is a suspicion, which Python decides.
 */
final class AvroShape {
    private static final int MAX_EMPTY_ITEMS = 65536; // without bytes: a few bytes would become a long list
    private static final long MOST_MILLIS = Long.MAX_VALUE / 1000;

    private final String kind;
    private int size = 0; // of a fixed; the number of symbols
    private BigInteger bound = null; // of a decimal
    private boolean millis = false;
    private AvroShape[] parts = new AvroShape[0];

    private AvroShape(Schema schema) {
        kind = schema.getType().getName();
        if (kind.equals("record")) {
            List fields = schema.getFields();
            parts = new AvroShape[fields.size()];
            for (int n = 0; n < parts.length; n++) parts[n] = new AvroShape(((Schema.Field) fields.get(n)).schema());
        } else if (kind.equals("union")) {
            List types = schema.getTypes();
            parts = new AvroShape[types.size()];
            for (int n = 0; n < parts.length; n++) parts[n] = new AvroShape((Schema) types.get(n));
        } else if (kind.equals("array")) {
            parts = new AvroShape[] {new AvroShape(schema.getElementType())};
        } else if (kind.equals("map")) {
            parts = new AvroShape[] {new AvroShape(schema.getValueType())};
        } else if (kind.equals("fixed")) {
            size = schema.getFixedSize();
        } else if (kind.equals("enum")) {
            size = schema.getEnumSymbols().size();
        }
        if (schema.getLogicalType() instanceof LogicalTypes.Decimal) {
            bound = BigInteger.TEN.pow(((LogicalTypes.Decimal) schema.getLogicalType()).getPrecision());
        }
        if (schema.getLogicalType() != null) millis = schema.getLogicalType().getName().endsWith("timestamp-millis");
    }

    static AvroShape of(String schema) {
        return new AvroShape(new Schema.Parser().parse(schema));
    }

    /** Return whether Spark reads a payload whole; false may be wrong, true never is. */
    boolean fits(byte[] payload) {
        try {
            return after(payload, 0) == payload.length;
        } catch (IndexOutOfBoundsException error) {
            return false; // it ends too early
        }
    }

    /** Return the index after a value, or beyond the end if it is broken. */
    private int after(byte[] b, int from) {
        int broken = b.length + 1;
        if (kind.equals("null")) return from;
        if (kind.equals("boolean")) return b[from] == 0 || b[from] == 1 ? from + 1 : broken;
        if (kind.equals("float")) return from + 4;
        if (kind.equals("double")) return from + 8;
        if (kind.equals("fixed")) return size > b.length - from || !inBound(b, from, from + size) ? broken : from + size;
        if (kind.equals("record")) {
            int at = from;
            for (int n = 0; n < parts.length && at <= b.length; n++) at = parts[n].after(b, at);
            return at;
        }
        if (kind.equals("array") || kind.equals("map")) return afterBlocks(b, from, kind.equals("map"));
        int at = end(b, from);
        if (at < 0) return broken;
        long value = number(b, from, at);
        if (kind.equals("union")) return value < 0 || value >= parts.length ? broken : parts[(int) value].after(b, at);
        if (kind.equals("enum")) return value < 0 || value >= size ? broken : at;
        if (kind.equals("int")) return value == (int) value ? at : broken;
        if (kind.equals("long")) return millis && Math.abs(value) > MOST_MILLIS ? broken : at;
        if (value < 0 || value > b.length - at) return broken;
        int to = at + (int) value;
        return (kind.equals("string") ? isUtf8(b, at, to) : inBound(b, at, to)) ? to : broken;
    }

    private int afterBlocks(byte[] b, int from, boolean named) {
        HashSet names = named ? new HashSet() : null;
        int at = from, empty = 0;
        while (true) {
            int next = end(b, at);
            if (next < 0) return b.length + 1;
            long count = number(b, at, next);
            at = next;
            if (count == 0) return at;
            if (count < 0) { // its size in bytes follows
                count = -count;
                at = end(b, at);
                if (at < 0 || count < 0) return b.length + 1;
            }
            for (long n = 0; n < count; n++) {
                int begin = at;
                if (named) {
                    next = end(b, at);
                    long length = next < 0 ? -1 : number(b, at, next);
                    if (length < 0 || length > b.length - next) return b.length + 1;
                    at = next + (int) length;
                    if (!isUtf8(b, next, at)) return b.length + 1;
                    if (!names.add(new String(b, next, at - next, StandardCharsets.UTF_8))) return b.length + 1;
                }
                at = parts[0].after(b, at);
                if (at > b.length || at == begin && ++empty > MAX_EMPTY_ITEMS) return b.length + 1;
            }
        }
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
