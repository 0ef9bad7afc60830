package cloudevents_kafka.spark;

import java.util.Base64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A known extension: the type and the rules of its value.
 *
 * Its description has words with spaces between them: the name, the type, rules, {@code @} and the
 * clause of its document, and {@code +name} for each attribute that it needs.
 */
final class Extension {
    private static final UTF8String INTEGER = UTF8String.fromString("Integer");
    private static final UTF8String BOOLEAN = UTF8String.fromString("Boolean");
    private static final UTF8String BINARY = UTF8String.fromString("Binary");
    private static final UTF8String URI = UTF8String.fromString("URI");
    private static final UTF8String URI_REFERENCE = UTF8String.fromString("URI-reference");
    private static final UTF8String TIMESTAMP = UTF8String.fromString("Timestamp");
    private static final byte[] TRUE = Text.word("true");
    private static final byte[] FALSE = Text.word("false");
    private static final int MAX_DIGITS = 10; // of 32 bits
    private static final long INTEGERS = 1L << 31;

    final byte[] name;
    final UTF8String type; // null if the records with this extension are left to Python
    final boolean noSchema;
    final boolean notBeforeStart;
    final byte[][] needs;
    final UTF8String clause;
    private final boolean notEmpty, positive, notNegative, mustBeTrue, list;

    Extension(String description) {
        String[] words = description.split(" ");
        String rules = description + " ";
        name = Text.word(words[0]);
        type = words.length == 1 ? null : UTF8String.fromString(words[1]);
        notEmpty = rules.indexOf(" not-empty ") > 0;
        positive = rules.indexOf(" positive ") > 0;
        notNegative = rules.indexOf(" not-negative ") > 0;
        mustBeTrue = rules.indexOf(" true ") > 0;
        list = rules.indexOf(" list ") > 0;
        noSchema = rules.indexOf(" no-schema ") > 0;
        notBeforeStart = rules.indexOf(" not-before-start ") > 0;
        int mark = rules.indexOf(" @");
        clause = mark < 0 ? null : UTF8String.fromString(rules.substring(mark + 2, rules.indexOf(' ', mark + 1)));
        String[] needed = rules.substring(rules.indexOf(" +") + 1).split(" ");
        needs = new byte[rules.indexOf(" +") < 0 ? 0 : needed.length][];
        for (int n = 0; n < needs.length; n++) needs[n] = Text.word(needed[n].substring(1));
    }

    /** Return whether rules are about other attributes, too. */
    boolean isRelated() {
        return needs.length > 0 || noSchema || notBeforeStart;
    }

    /** Return whether lenient reading leaves out an empty text, and no other rule decides. */
    boolean isLeftOutIfEmpty() {
        return notEmpty && clause != null && !isRelated();
    }

    /** Return the text of a Boolean in capital letters or quotation marks as it is valid, or null. */
    byte[] corrected(byte[] b, int from, int to) {
        if (!type.equals(BOOLEAN)) return null;
        boolean quoted = Text.isQuoted(b, from, to);
        byte[] lower = quoted ? Text.lowerCase(b, from + 1, to - 1) : Text.lowerCase(b, from, to);
        return lower != null && accepts(lower, 0, lower.length) ? lower : null;
    }

    /** Return whether a text, which is a String, has the type and keeps the rules about itself. */
    boolean accepts(byte[] b, int from, int to) {
        if (notEmpty && from == to) return false;
        if (type.equals(INTEGER)) {
            if (!isInteger(b, from, to)) return false;
            boolean zero = b[to - 1] == '0' && (to - from == 1 || b[from] == '-' && to - from == 2);
            boolean negative = b[from] == '-' && !zero;
            return !(positive && (zero || negative)) && !(notNegative && negative);
        }
        if (type.equals(BOOLEAN)) return Text.is(TRUE, b, from, to) || !mustBeTrue && Text.is(FALSE, b, from, to);
        if (type.equals(TIMESTAMP)) return Time.micros(b, from, to) != null;
        if (type.equals(URI)) return Uri.isUri(b, from, to);
        if (type.equals(URI_REFERENCE)) return Uri.isReference(b, from, to);
        if (type.equals(BINARY)) return fromBase64(b, from, to) != null;
        return !list || isList(b, from, to);
    }

    /** Return whether a text is an Integer: T-04, T-05. */
    static boolean isInteger(byte[] b, int from, int to) {
        int first = from < to && b[from] == '-' ? from + 1 : from;
        if (first == to || to - first > MAX_DIGITS || (b[first] == '0' && to - first > 1)) return false;
        long value = 0;
        for (int at = first; at < to; at++) {
            if (!Text.isDigit(b[at])) return false;
            value = value * 10 + (b[at] - '0');
        }
        return first > from ? value <= INTEGERS : value < INTEGERS;
    }

    /** Return the bytes of a canonical text of base64, or null. */
    static byte[] fromBase64(byte[] b, int from, int to) {
        // The decoder accepts missing padding and nonzero pad bits.
        if ((to - from) % 4 != 0 || hasPadBits(b, from, to)) return null;
        byte[] text = new byte[to - from];
        System.arraycopy(b, from, text, 0, text.length);
        try {
            return Base64.getDecoder().decode(text);
        } catch (IllegalArgumentException error) {
            return null;
        }
    }

    private static boolean hasPadBits(byte[] b, int from, int to) {
        if (from == to || b[to - 1] != '=') return false;
        // RFC 4648 3.5: the last character of one or two bytes has two or four bits of zero.
        return b[to - 2] == '=' ? "AQgw".indexOf(b[to - 3]) < 0 : "AEIMQUYcgkosw048".indexOf(b[to - 2]) < 0;
    }

    /** A comma-separated list of entries without spaces, of which one is not empty; spaces around them do not count. */
    private static boolean isList(byte[] b, int from, int to) {
        boolean found = false;
        for (int at = from; at <= to; at++) {
            int end = at;
            while (end < to && b[end] != ',') end++;
            int first = at, last = end;
            while (first < last && b[first] == ' ') first++;
            while (first < last && b[last - 1] == ' ') last--;
            for (int n = first; n < last; n++) {
                if (b[n] == ' ') return false;
            }
            found |= first < last;
            at = end;
        }
        return found;
    }
}
