package cloudevents_kafka.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One JSON document of structured mode, read once from its first byte to its last.
 *
 * The grammar is RFC 8259's. Left to the converters are, besides what is no such
 * document: escapes in names, nulls for attributes, numbers that are no plain Integer,
 * surrogates that are written as escapes, and what is nested deep.
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
    private static final int DEEPEST = 200; // no other reader of the library stops earlier
    private static final int MOST_DIGITS = 9; // of an Integer: ten may be beyond its range

    private final byte[] b;
    private final Names known;
    private int at = 0;
    private int data = -1, afterData = -1; // the value of the member data
    private byte[] encoded = null; // the text of the member data_base64
    private boolean escaped = false; // whether the last string has an escape
    private byte[] payload = null;
    private UTF8String kind = null; // what the payload stands for, null for bytes

    /** @param known names whose type is known: an Integer or Boolean may not be theirs */
    Document(byte[] value, Names known) {
        this.b = value;
        this.known = known;
    }

    /** Read all attributes and the payload; false where that is not surely right. */
    boolean read(Attributes attributes) {
        if (!Text.isUtf8(b)) return false;
        space();
        if (!sign('{')) return false;
        do {
            space();
            if (!member(attributes)) return false;
            space();
        } while (sign(','));
        if (!sign('}')) return false;
        space();
        return at == b.length && readPayload(attributes);
    }

    /** Return the event's data, null where there is none. */
    byte[] payload() {
        return payload;
    }

    /** Return what the event's data came as: JSON or a text, null for bytes. */
    UTF8String kind() {
        return kind;
    }

    private boolean member(Attributes attributes) {
        int name = at + 1;
        if (!text() || escaped) return false;
        int afterName = at - 1;
        space();
        if (!sign(':')) return false;
        space();
        if (Text.is(DATA, b, name, afterName)) {
            if (data >= 0) return false;
            data = at;
            boolean good = value(0);
            afterData = at;
            return good;
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
        UTF8String type = word(TRUE) || word(FALSE) ? BOOLEAN : integer() ? INTEGER : null;
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
        sign('-');
        int first = at;
        digits();
        int count = at - first;
        return 0 < count && count <= MOST_DIGITS && (b[first] != '0' || at - begin == 1);
    }

    // --- any value --------------------------------------------------------------------

    private boolean value(int depth) {
        if (at == b.length || depth > DEEPEST) return false;
        switch (b[at]) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return text();
            case 't': return word(TRUE);
            case 'f': return word(FALSE);
            case 'n': return word(NULL);
            default: return number();
        }
    }

    private boolean object(int depth) {
        at++;
        space();
        if (sign('}')) return true;
        do {
            space();
            if (!text()) return false;
            space();
            if (!sign(':')) return false;
            space();
            if (!value(depth + 1)) return false;
            space();
        } while (sign(','));
        return sign('}');
    }

    private boolean array(int depth) {
        at++;
        space();
        if (sign(']')) return true;
        do {
            space();
            if (!value(depth + 1)) return false;
            space();
        } while (sign(','));
        return sign(']');
    }

    private boolean text() {
        escaped = false;
        if (!sign('"')) return false;
        while (at < b.length && b[at] != '"') {
            if (b[at] >= 0 && b[at] < ' ') return false;
            if (b[at] == '\\' && !escape()) return false;
            at++;
        }
        return sign('"');
    }

    /** Go to the last sign of an escape. */
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

    /** Return what a string of the document says, in UTF-8; each escape is longer than its character. */
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
        sign('-');
        if (!sign('0') && !digits()) return false;
        if (sign('.') && !digits()) return false;
        if (sign('e') || sign('E')) {
            if (!sign('+')) sign('-');
            return digits();
        }
        return true;
    }

    private boolean digits() {
        int begin = at;
        while (at < b.length && Text.isDigit(b[at])) at++;
        return at > begin;
    }

    private boolean word(byte[] word) {
        if (!Text.startsWith(word, b, at, b.length)) return false;
        at += word.length;
        return true;
    }

    private boolean sign(char sign) {
        if (at == b.length || b[at] != sign) return false;
        at++;
        return true;
    }

    private void space() {
        while (at < b.length && (b[at] == ' ' || b[at] == '\n' || b[at] == '\r' || b[at] == '\t')) at++;
    }

    // --- the data -----------------------------------------------------------------------

    private boolean readPayload(Attributes attributes) {
        if (encoded != null) return data < 0 && readBase64();
        if (data < 0) return true;
        byte[] type = attributes.contentType();
        int essence = 0;
        while (type != null && essence < type.length && type[essence] != ';') essence++;
        if (type != null && !inUtf8(type, essence)) return false;
        if (type == null || isJson(type, essence)) {
            kind = JSON_VALUE;
            payload = Arrays.copyOfRange(b, data, afterData);
            return true;
        }
        if (b[data] != '"') return false; // another type's data is a string
        kind = TEXT_VALUE;
        payload = unescaped(data + 1, afterData - 1);
        return true;
    }

    /** Tell whether a media type has no parameter but the charset UTF-8. */
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
        return Arrays.equals(Base64.getEncoder().encode(payload), encoded); // the decoder takes less padding, and more bits
    }
}
