package cloudevents_kafka.spark;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One JSON document of structured mode, read once from its first byte to its last.
 *
 * The grammar is that of RFC 8259, with any nesting of data.
 */
final class Document {
    private static final byte[] DATA = Text.word("data");
    private static final byte[] DATA_BASE64 = Text.word("data_base64");
    private static final byte[] TRUE = Text.word("true");
    private static final byte[] FALSE = Text.word("false");
    private static final byte[] NULL = Text.word("null");
    private static final int MAX_LEVELS = 32, MAX_DIGITS = 15; // of objects and lists that are kept as text
    private static final int NONE = -1; // no index: the grammar is broken
    private static final String ESCAPES = "\"\\/bfnrt";
    private static final String ESCAPED = "\"\\/\b\f\n\r\t";
    private static final UTF8String INTEGER = UTF8String.fromString("Integer");
    private static final UTF8String BOOLEAN = UTF8String.fromString("Boolean");
    private static final UTF8String JSON_VALUE = UTF8String.fromString("json");
    private static final UTF8String TEXT_VALUE = UTF8String.fromString("text");

    final byte[] b;
    private final ByteBuffer words;
    int at = 0;
    int nameEnd = 0; // of the last name that JsonShape has read
    long members = 0; // of objects, that JsonShape may still read
    int longestName = 0; // in bytes, of the names in nested values
    private int data = -1, afterData = -1; // the bounds of the member data
    private boolean encoded = false; // whether the member data_base64 occurred; it may be null
    boolean surrogates = false; // whether an escape is, or may be, half of a character
    boolean escaped = false, plain = false; // whether the last string has an escape; or only plain characters
    byte[] closers = new byte[16]; // of the open brackets in data
    byte[] payload = null; // the data of the event, or null
    UTF8String kind = null; // the kind of the payload: json or text, null for bytes

    Document(byte[] value) {
        b = value;
        words = Text.words(value);
    }

    /**
     * Read all attributes and the payload; return false if a rule is broken, or the charset is left to Python.
     *
     * @param ofData the content type of data without one, or null
     */
    boolean read(Attributes attributes, byte[] ofData) {
        if (!Text.isUtf8(words, b)) return false;
        skipSpace();
        if (!skip('{')) return false;
        skipSpace();
        if (!skip('}')) {
            do {
                skipSpace();
                if (!member(attributes)) return false;
                skipSpace();
            } while (skip(','));
            if (!skip('}')) return false;
        }
        skipSpace();
        if (at < b.length) return false;
        if (ofData != null && !attributes.hasContentType() && !attributes.addContentType(ofData)) return false;
        return (attributes.found == null || attributes.addOthers()) && readPayload(attributes);
    }

    /** Return whether the text is one JSON value; false if it has escapes that may be lone surrogates. */
    boolean isOneValue() {
        if (!Text.isUtf8(words, b)) return false;
        skipSpace();
        if (at == b.length || !value()) return false;
        skipSpace();
        return at == b.length && !surrogates;
    }

    private boolean member(Attributes attributes) {
        int from = at + 1;
        if (!text()) return false;
        byte[] name = b;
        int to = at - 1;
        if (escaped) {
            name = unescaped(from, to);
            if (name == null) return false;
            from = 0;
            to = name.length;
        }
        skipSpace();
        if (!skip(':')) return false;
        skipSpace();
        if (Text.is(DATA, name, from, to)) {
            if (data >= 0) return false; // N-05: repeated
            data = at;
            boolean valid = value();
            afterData = at;
            return valid;
        }
        if (Text.is(DATA_BASE64, name, from, to)) return base64();
        if (attributes.found != null && at < b.length) {
            if (b[at] == '{' || b[at] == '[') return nested(attributes, name, from, to);
            if (!Text.isName(name, from, to)) return other(attributes, name, from, to);
        }
        int begin = at;
        if (at < b.length && b[at] == '"') {
            if (!text()) return false;
            if (plain) return attributes.addString(name, from, to, b, begin + 1, at - 1);
            if (!escaped) return attributes.add(name, from, to, b, begin + 1, at - 1);
            byte[] text = unescaped(begin + 1, at - 1);
            return text != null && attributes.add(name, from, to, text, 0, text.length);
        }
        if (skipWord(NULL)) { // J-04: null is an absent attribute
            attributes.addAbsent(name, from, to);
            return true;
        }
        UTF8String type = scalarType();
        return type != null && attributes.addTyped(name, from, to, b, begin, at, type);
    }

    /** Move behind a Boolean or an Integer, and return its type; null for any other value. */
    private UTF8String scalarType() {
        return skipWord(TRUE) || skipWord(FALSE) ? BOOLEAN : integer() ? INTEGER : null;
    }

    /** Read a member whose name is not that of an attribute. */
    private boolean other(Attributes attributes, byte[] name, int from, int to) {
        int begin = at;
        if (skipWord(NULL)) {
            attributes.addAbsent(name, from, to);
            return true;
        }
        UTF8String type = null;
        byte[] text;
        if (b[at] == '"') {
            if (!text()) return false;
            text = escaped ? unescaped(begin + 1, at - 1) : Arrays.copyOfRange(b, begin + 1, at - 1);
        } else {
            type = scalarType();
            text = type == null ? null : Arrays.copyOfRange(b, begin, at);
        }
        return text != null && attributes.addOther(Arrays.copyOfRange(name, from, to), text, type, false);
    }

    /** Read an attribute that is an object or a list. */
    private boolean nested(Attributes attributes, byte[] name, int from, int to) {
        int begin = at;
        byte[] text = value() ? dense(begin, at) : null;
        if (text == null) return false;
        if (Text.isName(name, from, to)) return attributes.addNested(name, from, to, text);
        return attributes.addOther(Arrays.copyOfRange(name, from, to), text, null, true);
    }

    /**
     * Return JSON without the white space between its parts.
     *
     * @return null if it has many levels, a number of many digits or with an exponent, or an escaped
     * character, which Python's parser may refuse
     */
    private byte[] dense(int from, int to) {
        byte[] text = new byte[to - from];
        int length = 0, levels = 0, digits = 0;
        boolean inText = false;
        for (int n = from; n < to; n++) {
            byte c = b[n];
            if (inText) {
                if (c == '\\') {
                    text[length++] = c;
                    c = b[++n];
                    if (c == 'u') return null;
                } else if (c == '"') {
                    inText = false;
                }
            } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
                continue;
            } else if (c == '"') {
                inText = true;
            } else if (c == '{' || c == '[') {
                if (++levels > MAX_LEVELS) return null;
            } else if (c == '}' || c == ']') {
                levels--;
            } else if ((c | 0x20) == 'e' && digits > 0) {
                return null;
            }
            digits = !inText && (Text.isDigit(c) || c == '.') ? digits + 1 : 0;
            if (digits > MAX_DIGITS) return null;
            text[length++] = c;
        }
        return Arrays.copyOf(text, length);
    }

    private boolean integer() {
        int begin = at;
        skip('-');
        digits();
        return Extension.isInteger(b, begin, at); // not followed by a fraction or exponent: the member ends here
    }

    private boolean base64() {
        if (encoded) return false; // N-05: repeated
        encoded = true;
        if (skipWord(NULL)) return true; // J-04
        int begin = at + 1;
        if (!text()) return false;
        byte[] text = escaped ? unescaped(begin, at - 1) : b;
        if (text == null) return false;
        payload = escaped ? Extension.fromBase64(text, 0, text.length) : Extension.fromBase64(b, begin, at - 1);
        return payload != null;
    }

    // --- JSON values: each method moves behind a value or returns false --------------------------------------------------------------------

    boolean value() {
        at = afterValue(at);
        return at != NONE;
    }

    /** Return the index after a value. Local variables are faster than the field at. */
    private int afterValue(int from) {
        byte[] b = this.b;
        int i = from, depth = 0;
        while (true) {
            if (i == b.length) return NONE;
            byte c = b[i];
            if (c == '"') {
                i = afterText(i + 1);
            } else if (c == '{' || c == '[') {
                byte closer = (byte) (c + 2);
                i = afterSpace(i + 1);
                if (i == b.length) return NONE;
                if (b[i] != closer) {
                    if (depth == closers.length) closers = Arrays.copyOf(closers, 2 * depth);
                    closers[depth++] = closer;
                    if (closer == '}') i = afterName(i);
                    if (i == NONE) return NONE;
                    continue;
                }
                i++;
            } else {
                i = afterScalar(i);
            }
            while (true) {
                if (i == NONE || depth == 0) return i;
                i = afterSpace(i);
                if (i == b.length) return NONE;
                if (b[i] == ',') {
                    i = afterSpace(i + 1);
                    if (closers[depth - 1] == '}') i = afterName(i);
                    if (i == NONE) return NONE;
                    break;
                }
                if (b[i++] != closers[--depth]) return NONE;
            }
        }
    }

    /** Return the index after the name of a member, its colon, and space. */
    private int afterName(int from) {
        if (from == b.length || b[from] != '"') return NONE;
        int i = afterText(from + 1);
        if (i == NONE) return NONE;
        if (i - from > longestName) longestName = i - from;
        i = afterSpace(i);
        return i < b.length && b[i] == ':' ? afterSpace(i + 1) : NONE;
    }

    /** Return the index after a string, from that after its first quotation mark. */
    private int afterText(int from) {
        int i = from;
        while (true) {
            i = Text.afterPlain(words, b, i);
            if (i == b.length) return NONE;
            byte c = b[i++];
            if (c == '"') return i;
            if (c == '\\') {
                at = i;
                if (!escape()) return NONE;
                i = at;
            } else {
                if (0 <= c && c < ' ') return NONE;
                while (i < b.length && b[i] < 0) i++;
            }
        }
    }

    private int afterSpace(int from) {
        int i = from;
        while (i < b.length && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t')) i++;
        return i;
    }

    private int afterScalar(int from) {
        at = from;
        return scalar() ? at : NONE;
    }

    private boolean scalar() {
        switch (b[at]) {
            case 't': return skipWord(TRUE);
            case 'f': return skipWord(FALSE);
            case 'n': return skipWord(NULL);
            default: return number();
        }
    }

    boolean text() {
        escaped = false;
        plain = true;
        if (!skip('"')) return false;
        while (true) {
            at = Text.afterPlain(words, b, at);
            if (at == b.length) return false;
            byte c = b[at++];
            if (c == '"') return true;
            plain = false;
            if (c == '\\') {
                if (!escape()) return false;
            } else {
                if (0 <= c && c < ' ') return false;
                while (at < b.length && b[at] < 0) at++;
            }
        }
    }

    /** Move behind an escape, whose backslash has been read. */
    private boolean escape() {
        escaped = true;
        if (at == b.length) return false;
        byte c = b[at++];
        if (c != 'u') return ESCAPES.indexOf(c) >= 0;
        if (b.length - at < 4) return false;
        surrogates |= (b[at] | 0x20) == 'd';
        for (int n = 0; n < 4; n++) {
            if (!Text.isHex(b[at + n])) return false;
        }
        at += 4;
        return true;
    }

    /** Return the value of a string in UTF-8, or null if it has a lone surrogate. */
    byte[] unescaped(int from, int to) {
        byte[] text = new byte[to - from]; // each escape is longer than its character
        int length = 0;
        for (int n = from; n < to; n++) {
            if (b[n] != '\\') {
                text[length++] = b[n];
            } else if (b[++n] != 'u') {
                text[length++] = (byte) ESCAPED.charAt(ESCAPES.indexOf(b[n]));
            } else {
                int point = hex(n + 1);
                n += 4;
                if (0xD800 <= point && point <= 0xDFFF) {
                    boolean pair = point < 0xDC00 && to - n > 6 && b[n + 1] == '\\' && b[n + 2] == 'u';
                    int low = pair ? hex(n + 3) : 0;
                    if (low < 0xDC00 || low > 0xDFFF) return null;
                    point = 0x10000 + (point - 0xD800 << 10) + (low - 0xDC00);
                    n += 6;
                }
                length = Text.put(point, text, length);
            }
        }
        return Arrays.copyOf(text, length);
    }

    private int hex(int from) {
        int value = 0;
        for (int n = 0; n < 4; n++) value = value << 4 | Character.digit((char) b[from + n], 16);
        return value;
    }

    boolean number() {
        skip('-');
        if (!skip('0') && !digits()) return false;
        if (skip('.') && !digits()) return false;
        if (skip('e') || skip('E')) {
            if (!skip('+')) skip('-');
            return digits();
        }
        return true;
    }

    boolean digits() {
        int begin = at;
        while (at < b.length && Text.isDigit(b[at])) at++;
        return at > begin;
    }

    boolean skipWord(byte[] word) {
        if (!Text.startsWith(word, b, at, b.length)) return false;
        at += word.length;
        return true;
    }

    boolean skip(char c) {
        if (at == b.length || b[at] != c) return false;
        at++;
        return true;
    }

    void skipSpace() {
        at = afterSpace(at);
    }

    // --- the data -----------------------------------------------------------------------

    private boolean readPayload(Attributes attributes) {
        // J-12: not both; J-14: base64 is bytes. A null is data (J-13), but not next to base64.
        if (payload != null) return data < 0 || Text.is(NULL, b, data, afterData);
        if (data < 0) return true;
        MediaType type = attributes.contentType;
        if (type != null && type.otherCharset) return false;
        if (type == null || type.json) { // J-09: without a content type the value is JSON
            kind = JSON_VALUE;
            payload = Arrays.copyOfRange(b, data, afterData);
            return true;
        }
        if (b[data] != '"') return false; // J-16: data of any other type is a string
        kind = TEXT_VALUE;
        payload = unescaped(data + 1, afterData - 1);
        return payload != null && (!type.ascii || Text.isAscii(payload));
    }
}
