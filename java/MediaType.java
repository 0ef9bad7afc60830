package cloudevents_kafka.spark;

import java.util.Arrays;

/** What a content type says about data; comparison ignores case. */
final class MediaType {
    private static final boolean[] TOKEN = Text.table("!#$%&'*+-.^_`{|}~");
    private static final byte[] JSON = Text.word("json");
    private static final byte[] CHARSET = Text.word("charset");
    private static final byte[] UTF_8 = Text.word("utf-8");
    private static final byte[] UTF8 = Text.word("utf8");
    private static final byte[] ASCII = Text.word("us-ascii");

    boolean valid = false; // whether it is a media type of RFC 2046
    boolean json = false; // J-08: "has the form `*/json` or `*/*+json`"
    // The first parameter charset of a valid text; UTF-8 if there is none.
    boolean ascii = false;
    boolean otherCharset = false;

    private static volatile MediaType last = new MediaType(JSON, 0, JSON.length);

    private final byte[] text;

    /** Return the media type of a text; many events have the same. */
    static MediaType of(byte[] b, int from, int to) {
        MediaType found = last;
        if (Arrays.equals(b, from, to, found.text, 0, found.text.length)) return found;
        found = new MediaType(b, from, to);
        last = found;
        return found;
    }

    private MediaType(byte[] b, int from, int to) {
        text = Arrays.copyOfRange(b, from, to);
        int slash = afterToken(b, from, to);
        if (slash == from || slash == to || b[slash] != '/') return;
        int end = afterToken(b, slash + 1, to);
        if (end == slash + 1) return;
        int suffix = end - JSON.length;
        json = suffix > slash && (b[suffix - 1] == '/' || b[suffix - 1] == '+') && Text.startsWithAnyCase(JSON, b, suffix, end);
        valid = areParameters(b, end, to);
        if (!valid) otherCharset = ascii = false;
    }

    private boolean areParameters(byte[] b, int from, int to) {
        boolean found = false;
        int at = afterSpace(b, from, to);
        while (at < to) {
            int name = afterSpace(b, at + 1, to);
            int mark = afterToken(b, name, to);
            if (b[at] != ';' || mark == name || mark >= to || b[mark] != '=') return false;
            int end = afterValue(b, mark + 1, to);
            if (end < 0) return false;
            if (!found && mark - name == CHARSET.length && Text.startsWithAnyCase(CHARSET, b, name, mark)) {
                found = true;
                readCharset(b, mark + 1, end);
            }
            at = afterSpace(b, end, to);
        }
        return true;
    }

    /** Return the index after a token or a quoted string, or -1. */
    private static int afterValue(byte[] b, int from, int to) {
        if (from == to || b[from] != '"') {
            int at = afterToken(b, from, to);
            return at == from ? -1 : at;
        }
        for (int at = from + 1; at < to; at++) {
            if (b[at] == '"') return at + 1;
            if (b[at] == '\\' && (++at == to || b[at] < ' ')) return -1; // before ASCII only
            if (0 <= b[at] && b[at] < ' ' || b[at] == 0x7F) return -1;
        }
        return -1;
    }

    private void readCharset(byte[] b, int from, int to) {
        byte[] name = new byte[to - from];
        int length = 0;
        boolean quoted = b[from] == '"';
        for (int at = quoted ? from + 1 : from; at < (quoted ? to - 1 : to); at++) {
            if (quoted && b[at] == '\\') at++;
            name[length++] = b[at];
        }
        ascii = isAnyCase(ASCII, name, length);
        otherCharset = !ascii && !isAnyCase(UTF_8, name, length) && !isAnyCase(UTF8, name, length);
    }

    private static boolean isAnyCase(byte[] word, byte[] b, int length) {
        return length == word.length && Text.startsWithAnyCase(word, b, 0, length);
    }

    private static int afterToken(byte[] b, int from, int to) {
        int at = from;
        while (at < to && b[at] >= 0 && TOKEN[b[at]]) at++;
        return at;
    }

    static int afterSpace(byte[] b, int from, int to) {
        int at = from;
        while (at < to && (b[at] == ' ' || b[at] == '\t')) at++;
        return at;
    }
}
