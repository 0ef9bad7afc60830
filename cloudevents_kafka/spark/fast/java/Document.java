package cloudevents_kafka.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One JSON document of structured mode, read once from its first byte to its last.
 *
 * The grammar is that of RFC 8259. Documents with these are not recognized: escapes in names,
 * attributes that are null, numbers that are not plain Integers, surrogates as escapes, deep nesting.
 */
final class Document {
    private static final byte[] DATA = Text.word("data");
    private static final byte[] DATA_BASE64 = Text.word("data_base64");
    private static final byte[] DATACONTENTTYPE = Text.word("datacontenttype");
    private static final byte[] TRUE = Text.word("true");
    private static final byte[] FALSE = Text.word("false");
    private static final byte[] NULL = Text.word("null");
    private static final byte[] JSON = Text.word("json");
    private static final byte[] CHARSET = Text.word("charset=utf-8");
    private static final String ESCAPES = "\"\\/bfnrt";
    private static final String ESCAPED = "\"\\/\b\f\n\r\t";
    private static final UTF8String INTEGER = UTF8String.fromString("Integer");
    private static final UTF8String BOOLEAN = UTF8String.fromString("Boolean");
    private static final UTF8String JSON_VALUE = UTF8String.fromString("json");
    private static final UTF8String TEXT_VALUE = UTF8String.fromString("text");
    private static final int MAX_DEPTH = 200; // no other reader of the library has a lower limit
    private static final int MAX_DIGITS = 9; // T-04: an Integer has 32 bits, which ten digits may exceed

    private final byte[] b;
    private final Names known;
    private int at = 0;
    private int data = -1, afterData = -1; // the bounds of the member data
    private byte[] encoded = null; // the text of the member data_base64
    private boolean escaped = false; // whether the last string has an escape
    byte[] payload = null; // the data of the event, or null
    UTF8String kind = null; // the kind of the payload: json or text, null for bytes

    /** @param known names that have a type: a number or boolean may not be of it */
    Document(byte[] value, Names known) {
        this.b = value;
        this.known = known;
    }

    /** Read all attributes and the payload; return false if the document is not recognized. */
    boolean read(Attributes attributes) {
        if (!Text.isUtf8(b)) return false;
        skipSpace();
        if (!skip('{')) return false;
        do {
            skipSpace();
            if (!member(attributes)) return false;
            skipSpace();
        } while (skip(','));
        if (!skip('}')) return false;
        skipSpace();
        return at == b.length && readPayload(attributes);
    }

    private boolean member(Attributes attributes) {
        int name = at + 1;
        if (!text() || escaped) return false;
        int afterName = at - 1;
        skipSpace();
        if (!skip(':')) return false;
        skipSpace();
        if (Text.is(DATA, b, name, afterName)) {
            if (data >= 0) return false; // repeated
            data = at;
            boolean valid = value(0);
            afterData = at;
            return valid;
        }
        if (Text.is(DATA_BASE64, b, name, afterName)) {
            int begin = at + 1;
            if (encoded != null || !text()) return false;
            encoded = unescaped(begin, at - 1);
            return true;
        }
        int begin = at;
        if (at < b.length && b[at] == '"') {
            if (!text()) return false;
            if (!escaped) return attribute(attributes, name, afterName, b, begin + 1, at - 1);
            byte[] text = unescaped(begin + 1, at - 1);
            return attribute(attributes, name, afterName, text, 0, text.length);
        }
        UTF8String type = skipWord(TRUE) || skipWord(FALSE) ? BOOLEAN : integer() ? INTEGER : null;
        boolean typed = type != null && !known.contain(b, name, afterName);
        return typed && attributes.addExtension(b, name, afterName, b, begin, at, type);
    }

    private boolean attribute(Attributes attributes, int name, int afterName, byte[] text, int begin, int end) {
        return Text.is(DATACONTENTTYPE, b, name, afterName)
            ? attributes.addContentType(text, begin, end)
            : attributes.add(b, name, afterName, text, begin, end);
    }

    private boolean integer() {
        int begin = at;
        skip('-');
        int first = at;
        digits();
        int count = at - first;
        return 0 < count && count <= MAX_DIGITS && (b[first] != '0' || at - begin == 1);
    }

    // --- JSON values: each method moves behind a value or returns false --------------------------------------------------------------------

    private boolean value(int depth) {
        if (at == b.length || depth > MAX_DEPTH) return false;
        switch (b[at]) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return text();
            case 't': return skipWord(TRUE);
            case 'f': return skipWord(FALSE);
            case 'n': return skipWord(NULL);
            default: return number();
        }
    }

    private boolean object(int depth) {
        at++;
        skipSpace();
        if (skip('}')) return true;
        do {
            skipSpace();
            if (!text()) return false;
            skipSpace();
            if (!skip(':')) return false;
            skipSpace();
            if (!value(depth + 1)) return false;
            skipSpace();
        } while (skip(','));
        return skip('}');
    }

    private boolean array(int depth) {
        at++;
        skipSpace();
        if (skip(']')) return true;
        do {
            skipSpace();
            if (!value(depth + 1)) return false;
            skipSpace();
        } while (skip(','));
        return skip(']');
    }

    private boolean text() {
        escaped = false;
        if (!skip('"')) return false;
        while (at < b.length && b[at] != '"') {
            if (b[at] >= 0 && b[at] < ' ') return false;
            if (b[at] == '\\' && !escape()) return false;
            at++;
        }
        return skip('"');
    }

    /** Move to the last character of an escape. */
    private boolean escape() {
        escaped = true;
        if (++at == b.length) return false;
        if (b[at] != 'u') return ESCAPES.indexOf(b[at]) >= 0;
        if (b.length - at < 5) return false;
        for (int n = 1; n <= 4; n++) {
            if (!Text.isHex(b[at + n])) return false;
        }
        boolean surrogate = (b[at + 1] | 0x20) == 'd' && b[at + 2] >= '8';
        at += 4;
        return !surrogate;
    }

    /** Return the value of a string in UTF-8; it is never longer, as each escape is longer than its character. */
    private byte[] unescaped(int from, int to) {
        byte[] text = new byte[to - from];
        int length = 0;
        for (int n = from; n < to; n++) {
            if (b[n] != '\\') {
                text[length++] = b[n];
            } else if (b[++n] != 'u') {
                text[length++] = (byte) ESCAPED.charAt(ESCAPES.indexOf(b[n]));
            } else {
                length = Text.put(Integer.parseInt(new String(b, n + 1, 4, StandardCharsets.US_ASCII), 16), text, length);
                n += 4;
            }
        }
        return Arrays.copyOf(text, length);
    }

    private boolean number() {
        skip('-');
        if (!skip('0') && !digits()) return false;
        if (skip('.') && !digits()) return false;
        if (skip('e') || skip('E')) {
            if (!skip('+')) skip('-');
            return digits();
        }
        return true;
    }

    private boolean digits() {
        int begin = at;
        while (at < b.length && Text.isDigit(b[at])) at++;
        return at > begin;
    }

    private boolean skipWord(byte[] word) {
        if (!Text.startsWith(word, b, at, b.length)) return false;
        at += word.length;
        return true;
    }

    private boolean skip(char c) {
        if (at == b.length || b[at] != c) return false;
        at++;
        return true;
    }

    private void skipSpace() {
        while (at < b.length && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t')) at++;
    }

    // --- the data -----------------------------------------------------------------------

    private boolean readPayload(Attributes attributes) {
        if (encoded != null) return data < 0 && readBase64(); // J-12: not both; J-14: base64 is bytes
        if (data < 0) return true;
        byte[] type = attributes.contentType();
        int essence = 0;
        while (type != null && essence < type.length && type[essence] != ';') essence++;
        if (type != null && !inUtf8(type, essence)) return false;
        if (type == null || isJson(type, essence)) { // J-09: without a content type the value is JSON
            kind = JSON_VALUE;
            payload = Arrays.copyOfRange(b, data, afterData);
            return true;
        }
        if (b[data] != '"') return false; // J-16: data of any other type is a string
        kind = TEXT_VALUE;
        payload = unescaped(data + 1, afterData - 1);
        return true;
    }

    /** Return whether a media type has no parameter other than the charset UTF-8. */
    private static boolean inUtf8(byte[] type, int essence) {
        int parameter = essence + 1;
        if (parameter < type.length && type[parameter] == ' ') parameter++;
        return essence == type.length || Text.is(CHARSET, type, parameter, type.length);
    }

    private static boolean isJson(byte[] type, int essence) {
        int suffix = essence - JSON.length;
        boolean marked = suffix > 0 && (type[suffix - 1] == '/' || type[suffix - 1] == '+');
        return marked && Text.is(JSON, type, suffix, essence);
    }

    private boolean readBase64() {
        try {
            payload = Base64.getDecoder().decode(encoded);
        } catch (IllegalArgumentException error) {
            return false;
        }
        return Arrays.equals(Base64.getEncoder().encode(payload), encoded); // the decoder accepts missing padding and nonzero pad bits
    }
}
