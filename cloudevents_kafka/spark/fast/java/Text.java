package cloudevents_kafka.spark;

import java.nio.charset.StandardCharsets;

/**
 * Checks of texts, which are bytes of UTF-8 {@code b[from..to)}.
 *
 * Each check is as narrow as the rule of the library or narrower, never wider. None throws.
 */
final class Text {
    private static final boolean[] TOKEN = table("!#$%&'*+-.^_`|~"); // RFC 9110
    private static final boolean[] URI = table("!$&'()*+,-.;=_~"); // RFC 3986: valid in any part; escapes are checked apart
    private static final boolean[] SEGMENT = table("!$&'()*+,-.;=_~@");
    private static final boolean[] PATH = table("!$&'()*+,-.;=_~:@/");
    private static final boolean[] QUERY = table("!$&'()*+,-.;=_~:@/?");
    private static final boolean[] SCHEME = table("+-.");
    private static final int MALFORMED = -1;

    private Text() {}

    /** Return whether a text is a String of the core specification and not empty. */
    static boolean isString(byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            if (b[at] >= 0) {
                if (b[at] < ' ' || b[at] == 0x7F) return false; // T-06: no control characters
                at++;
            } else {
                int point = codePoint(b, at, to);
                if (point == MALFORMED || isForbidden(point)) return false;
                at += lengthOf(point);
            }
        }
        return from < to;
    }

    /** T-06, T-07: no control characters U+0080 to U+009F, no noncharacters. */
    private static boolean isForbidden(int point) {
        return point < 0xA0 || (point & 0xFFFE) == 0xFFFE || (0xFDD0 <= point && point <= 0xFDEF);
    }

    /** Return whether bytes are UTF-8 without surrogates and overlong forms. */
    static boolean isUtf8(byte[] b) {
        int at = 0;
        while (at < b.length) {
            if (b[at] >= 0) {
                at++;
            } else {
                int point = codePoint(b, at, b.length);
                if (point == MALFORMED) return false;
                at += lengthOf(point);
            }
        }
        return true;
    }

    private static int lengthOf(int point) {
        return point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    }

    /** Return the character that begins at a byte above 0x7F. */
    private static int codePoint(byte[] b, int at, int to) {
        int first = b[at] & 0xFF;
        int more = first < 0xC2 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 0;
        if (more == 0 || to - at <= more) return MALFORMED;
        int point = first & (0x3F >> more);
        for (int n = 1; n <= more; n++) {
            if ((b[at + n] & 0xC0) != 0x80) return MALFORMED;
            point = point << 6 | (b[at + n] & 0x3F);
        }
        boolean valid = lengthOf(point) == more + 1 && (point & 0x1FF800) != 0xD800 && point <= 0x10FFFF;
        return valid ? point : MALFORMED;
    }

    /** Write a character of the basic plane, not a surrogate, as UTF-8; return the index after it. */
    static int put(int point, byte[] b, int at) {
        if (point < 0x80) {
            b[at++] = (byte) point;
        } else {
            if (point < 0x800) {
                b[at++] = (byte) (0xC0 | point >> 6);
            } else {
                b[at++] = (byte) (0xE0 | point >> 12);
                b[at++] = (byte) (0x80 | (point >> 6 & 0x3F));
            }
            b[at++] = (byte) (0x80 | (point & 0x3F));
        }
        return at;
    }

    /** Return whether a text is a name of attributes; {@code data} is not excluded. */
    static boolean isName(byte[] b, int from, int to) {
        for (int at = from; at < to; at++) {
            if (!isDigit(b[at]) && (b[at] < 'a' || b[at] > 'z')) return false;
        }
        return from < to;
    }

    static boolean isDigit(byte c) {
        return '0' <= c && c <= '9';
    }

    /** Return whether a text is a URI-reference in ASCII, not empty, without a user or brackets. */
    static boolean isUriReference(byte[] b, int from, int to) {
        int colon = endOf(SEGMENT, b, from, to);
        if (colon < to && b[colon] == ':') return isUri(b, from, to);
        return from < to && isAfterScheme(b, from, to);
    }

    /** Return whether a text is an absolute URI in ASCII, without a user or brackets. */
    static boolean isUri(byte[] b, int from, int to) {
        int colon = endOf(SCHEME, b, from, to);
        boolean scheme = from < colon && colon < to && b[colon] == ':' && b[from] >= 'A';
        return scheme && isAfterScheme(b, colon + 1, to);
    }

    private static boolean isAfterScheme(byte[] b, int from, int to) {
        int at = from;
        if (to - at > 1 && b[at] == '/' && b[at + 1] == '/') {
            at = endOf(URI, b, at + 2, to);
            if (at < to && b[at] == ':') {
                do at++; while (at < to && isDigit(b[at]));
            }
            if (at < to && b[at] != '/' && b[at] != '?' && b[at] != '#') return false;
        }
        at = endOf(PATH, b, at, to);
        if (at < to && b[at] == '?') at = endOf(QUERY, b, at, to);
        if (at < to && b[at] == '#') at = endOf(QUERY, b, at + 1, to);
        return at == to;
    }

    /** Return the index of the first byte that is not in the table and not a percent-encoded byte. */
    private static int endOf(boolean[] table, byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            if (b[at] == '%' && table != SCHEME && to - at > 2 && isHex(b[at + 1]) && isHex(b[at + 2])) {
                at += 3;
            } else if (b[at] >= 0 && table[b[at]]) {
                at++;
            } else {
                return at;
            }
        }
        return to;
    }

    static boolean isHex(byte c) {
        return isDigit(c) || ('a' <= (c | 0x20) && (c | 0x20) <= 'f');
    }

    /** Return whether a text is a media type whose parameters are tokens, each after at most one space. */
    static boolean isMediaType(byte[] b, int from, int to) {
        int at = afterToken(b, from, to);
        if (at == from || at == to || b[at] != '/') return false;
        int subtype = at + 1;
        at = afterToken(b, subtype, to);
        if (at == subtype) return false;
        while (at < to) {
            int name = at + (to - at > 1 && b[at + 1] == ' ' ? 2 : 1);
            int mark = afterToken(b, name, to);
            if (b[at] != ';' || mark == name || mark >= to || b[mark] != '=') return false;
            at = afterToken(b, mark + 1, to);
            if (at == mark + 1) return false;
        }
        return true;
    }

    private static int afterToken(byte[] b, int from, int to) {
        int at = from;
        while (at < to && b[at] >= 0 && TOKEN[b[at]]) at++;
        return at;
    }

    /** Return whether a text is this word of ASCII. */
    static boolean is(byte[] word, byte[] b, int from, int to) {
        return to - from == word.length && startsWith(word, b, from, to);
    }

    /** Return whether a text begins with this word of ASCII. */
    static boolean startsWith(byte[] word, byte[] b, int from, int to) {
        if (to - from < word.length) return false;
        for (int n = 0; n < word.length; n++) {
            if (b[from + n] != word[n]) return false;
        }
        return true;
    }

    /** Return the bytes of a word of ASCII. */
    static byte[] word(String word) {
        return word.getBytes(StandardCharsets.US_ASCII);
    }

    /** Return a text with the letters A to Z in lower case. */
    static byte[] lower(byte[] b, int from, int to) {
        byte[] lower = new byte[to - from];
        for (int n = 0; n < lower.length; n++) {
            byte c = b[from + n];
            lower[n] = 'A' <= c && c <= 'Z' ? (byte) (c | 0x20) : c;
        }
        return lower;
    }

    /** Return a table of ASCII in which letters, digits and these characters are true. */
    private static boolean[] table(String more) {
        boolean[] table = new boolean[128];
        for (char c = 0; c < 128; c++) {
            boolean letter = 'a' <= (c | 0x20) && (c | 0x20) <= 'z';
            table[c] = letter || isDigit((byte) c) || more.indexOf(c) >= 0;
        }
        return table;
    }
}
