package cloudevents_kafka.spark;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;

/**
 * What a JSON text must be so that Spark's {@code from_json} reads all of its members of a schema.
 *
 * Where {@code fits} is true nothing becomes null or is cut; false is a suspicion, which Python decides.
 * A shape is made of the words that {@code spark/typed/shape.py} writes, a line for each.
 */
final class JsonShape {
    private static final byte[] TRUE = Text.word("true"), FALSE = Text.word("false"), NULL = Text.word("null");
    // Bounds within those of Spark's parser, which has no value of a longer name, or of more levels.
    private static final int MAX_NAME = 10000, MAX_DEPTH = 512;
    // Characters of numbers that are finite in any case: of all, and of an exponent with its letter.
    private static final int MAX_DIGITS = 25, MAX_EXPONENT = 3, MAX_FLOAT_EXPONENT = 2;
    // A row of Spark has a place for each member of an object, also for an absent one: bounds as in checks.py.
    private static final long FREE_MEMBERS = 16384, MEMBERS_PER_BYTE = 32;
    private static final long YEAR_10000 = 253402300800000000L; // in microseconds since 1970

    private char kind;
    private boolean nullable, closed;
    private int size, scale;
    private JsonShape[] parts = new JsonShape[0];
    private byte[][] names = new byte[0][]; // of the members, or the values of an enumeration
    private boolean[] required;

    private JsonShape(String[] words, int[] next) {
        String[] word = words[next[0]++].split(" ");
        kind = word[0].charAt(0);
        nullable = word[0].indexOf('?') > 0;
        closed = word[0].indexOf('!') > 0;
        if (word.length > 1) size = Integer.parseInt(word[1]);
        if (word.length > 2) scale = Integer.parseInt(word[2]);
        int count = kind == '{' || kind == 'e' ? size : kind == '[' || kind == '<' ? 1 : 0;
        boolean hasParts = kind != 'e';
        boolean hasNames = kind == '{' || kind == 'e';
        if (hasParts) parts = new JsonShape[count];
        if (hasNames) names = new byte[count][];
        required = new boolean[count];
        for (int n = 0; n < count; n++) {
            if (hasNames) {
                String name = words[next[0]++];
                required[n] = name.charAt(0) == '+';
                names[n] = name.substring(1).getBytes(StandardCharsets.UTF_8);
            }
            if (hasParts) parts[n] = new JsonShape(words, next);
        }
    }

    static JsonShape of(String text) {
        return new JsonShape(text.split("\n", -1), new int[1]);
    }

    /** Return whether Spark reads a payload whole; false may be wrong, true never is. */
    boolean fits(byte[] payload) {
        Document d = new Document(payload);
        if (!Text.isUtf8(payload)) return false;
        d.members = FREE_MEMBERS + MEMBERS_PER_BYTE * payload.length;
        d.skipSpace();
        if (!value(d)) return false;
        d.skipSpace();
        boolean isWithin = d.closers.length <= MAX_DEPTH && d.longestName <= MAX_NAME;
        return d.at == payload.length && !d.surrogates && isWithin;
    }

    private boolean value(Document d) {
        if (d.at >= d.b.length) return false;
        if (d.b[d.at] == 'n') return nullable && d.skipWord(NULL);
        switch (kind) {
            case '{': return object(d);
            case '<': return map(d);
            case '[': return list(d);
            case 'b': return d.skipWord(TRUE) || d.skipWord(FALSE);
            case 'i': return integer(d);
            case 'd': return real(d, MAX_EXPONENT);
            case 'f': return real(d, MAX_FLOAT_EXPONENT);
            case 'm': return decimal(d);
            default: return text(d);
        }
    }

    private boolean object(Document d) {
        d.members -= parts.length;
        if (d.members < 0 || !d.skip('{')) return false;
        boolean[] seen = new boolean[parts.length];
        int next = 0;
        d.skipSpace();
        if (!d.skip('}')) {
            do {
                int from = name(d), to = d.nameEnd;
                if (from < 0) return false;
                int n = find(d.b, from, to, next);
                if (n < 0) {
                    if (closed || !d.value()) return false;
                } else {
                    if (seen[n] || !parts[n].value(d)) return false;
                    seen[n] = true;
                    next = n + 1;
                }
                d.skipSpace();
            } while (d.skip(','));
            if (!d.skip('}')) return false;
        }
        for (int n = 0; n < parts.length; n++) {
            if (required[n] && !seen[n]) return false;
        }
        return true;
    }

    /** Move behind a name and its colon; return where it begins, or -1 for one that Python must read. */
    private static int name(Document d) {
        d.skipSpace();
        int from = d.at + 1;
        if (!d.text() || d.escaped || d.at - from > MAX_NAME) return -1;
        d.nameEnd = d.at - 1;
        d.skipSpace();
        if (!d.skip(':')) return -1;
        d.skipSpace();
        return from;
    }

    /** Return the number of a member, which is mostly the one after the last that was read; -1 if there is none. */
    private int find(byte[] b, int from, int to, int next) {
        for (int n = 0; n < names.length; n++) {
            int candidate = next + n < names.length ? next + n : next + n - names.length;
            if (Text.is(names[candidate], b, from, to)) return candidate;
        }
        return -1;
    }

    private boolean map(Document d) {
        if (!d.skip('{')) return false;
        HashSet keys = new HashSet();
        d.skipSpace();
        if (d.skip('}')) return true;
        do {
            int from = name(d), to = d.nameEnd;
            if (from < 0 || !keys.add(new String(d.b, from, to - from, StandardCharsets.UTF_8))) return false;
            if (!parts[0].value(d)) return false;
            d.skipSpace();
        } while (d.skip(','));
        return d.skip('}');
    }

    private boolean list(Document d) {
        if (!d.skip('[')) return false;
        d.skipSpace();
        if (d.skip(']')) return true;
        do {
            d.skipSpace();
            if (!parts[0].value(d)) return false;
            d.skipSpace();
        } while (d.skip(','));
        return d.skip(']');
    }

    private boolean integer(Document d) {
        int from = d.at;
        d.skip('-');
        int first = d.at;
        if (!d.digits() || d.at - first > 1 && d.b[first] == '0' || d.at - first > 19) return false;
        if (d.at < d.b.length && (d.b[d.at] == '.' || (d.b[d.at] | 0x20) == 'e')) return false;
        if (d.at - first < 3) return size > 1 || fitsIn(8, d.b, from, d.at);
        return d.at - first < 10 && size >= 4 || fitsIn(8 * size, d.b, from, d.at);
    }

    private static boolean fitsIn(int bits, byte[] b, int from, int to) {
        return new BigInteger(new String(b, from, to - from, StandardCharsets.US_ASCII)).bitLength() < bits;
    }

    private static boolean real(Document d, int mostOfExponent) {
        int from = d.at;
        if (!d.number() || d.at - from > MAX_DIGITS) return false;
        for (int n = from; n < d.at; n++) {
            if ((d.b[n] | 0x20) == 'e') return d.at - n <= mostOfExponent;
        }
        return true;
    }

    private boolean decimal(Document d) {
        boolean quoted = d.b[d.at] == '"';
        if (quoted) d.at++;
        d.skip('-');
        int first = d.at;
        if (!d.digits() || d.at - first > 1 && d.b[first] == '0') return false;
        int whole = d.b[first] == '0' ? 0 : d.at - first, point = d.at;
        if (d.skip('.') && !d.digits()) return false;
        if (whole > size - scale || d.at - point - 1 > scale) return false;
        if (d.at < d.b.length && (d.b[d.at] | 0x20) == 'e') return false;
        return !quoted || d.skip('"');
    }

    private boolean text(Document d) {
        int from = d.at + 1;
        boolean before = d.surrogates;
        d.surrogates = false;
        if (!d.text()) return false;
        int to = d.at - 1;
        if (d.surrogates && d.unescaped(from, to) == null) return false;
        d.surrogates = before;
        if (kind == 's') return true;
        if (d.escaped) return false;
        switch (kind) {
            case 't': return isTime(d.b, from, to);
            case 'l': return isTime(local(d.b, from, to), 0, to - from + 1);
            case 'y': return to - from == 10 && isTime(midnight(d.b, from, to), 0, 20);
            case 'x': return Extension.fromBase64(d.b, from, to) != null;
            default: return find(d.b, from, to, 0) >= 0; // an enumeration
        }
    }

    /** Return whether a text is a time that Spark reads as RFC 3339 does, to the microsecond. */
    private static boolean isTime(byte[] b, int from, int to) {
        Long micros = Time.micros(b, from, to);
        if (micros == null || micros.longValue() >= YEAR_10000) return false; // Python has no later year
        boolean leap = b[from + 17] == '6', first = b[from] == '0' && b[from + 1] == '0' && b[from + 2] == '0';
        if (leap || first || b[from + 10] != 'T') return false;
        int fraction = 0, at = from + 19;
        if (b[at] == '.') {
            for (at++; Text.isDigit(b[at]); at++) fraction++;
        }
        if (fraction > 6 || b[at] == 'Z' || b[at] == 'z') return fraction <= 6 && b[at] == 'Z';
        return b[at + 1] == '0' && (b[at] == '+' || b[at + 2] != '0') || b[at + 1] == '1' && b[at + 2] < '4';
    }

    private static byte[] local(byte[] b, int from, int to) {
        byte[] time = Arrays.copyOfRange(b, from, to + 1);
        time[to - from] = 'Z';
        return time;
    }

    private static byte[] midnight(byte[] b, int from, int to) {
        byte[] time = Arrays.copyOf(Text.word("0000-00-00T00:00:00Z"), 20);
        System.arraycopy(b, from, time, 0, to - from);
        return time;
    }
}
