package cloudevents_kafka.spark;

/**
 * Texts as bytes of UTF-8, {@code b[from..to)}, and whether they surely keep a rule.
 *
 * Each answer is as narrow as the library's own rule, or narrower, never wider. No bytes
 * make it throw.
 */
final class Text {
    private static final boolean[] TOKEN = signs("!#$%&'*+-.^_`|~"); // RFC 9110
    private static final boolean[] URI = signs("!$&'()*+,-.;=_~"); // RFC 3986, anywhere in it, but for %
    private static final boolean[] SEGMENT = signs("!$&'()*+,-.;=_~@");
    private static final boolean[] PATH = signs("!$&'()*+,-.;=_~:@/");
    private static final boolean[] QUERY = signs("!$&'()*+,-.;=_~:@/?");
    private static final boolean[] SCHEME = signs("+-.");
    private static final int MALFORMED = -1;

    private Text() {}

    /** Tell whether it is a String of the core specification, and not empty. */
    static boolean isString(byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            if (b[at] >= 0) {
                if (b[at] < ' ' || b[at] == 0x7F) return false;
                at++;
            } else {
                int point = codePoint(b, at, to);
                if (point == MALFORMED || isForbidden(point)) return false;
                at += lengthOf(point);
            }
        }
        return from < to;
    }

    private static boolean isForbidden(int point) {
        return point < 0xA0 || (point & 0xFFFE) == 0xFFFE || (0xFDD0 <= point && point <= 0xFDEF);
    }

    /** Tell whether all of it is UTF-8, by the strict definition: no surrogates, nothing overlong. */
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

    /** Read the character that begins at a byte over 0x7F. */
    private static int codePoint(byte[] b, int at, int to) {
        int first = b[at] & 0xFF;
        int more = first < 0xC2 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 0;
        if (more == 0 || to - at <= more) return MALFORMED;
        int point = first & (0x3F >> more);
        for (int n = 1; n <= more; n++) {
            if ((b[at + n] & 0xC0) != 0x80) return MALFORMED;
            point = point << 6 | (b[at + n] & 0x3F);
        }
        boolean good = lengthOf(point) == more + 1 && (point & 0x1FF800) != 0xD800 && point <= 0x10FFFF;
        return good ? point : MALFORMED;
    }

    /** Write a character of the basic plane, no surrogate, as UTF-8; return where the next goes. */
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

    /** Tell whether it may name an attribute; {@code data} is not looked for. */
    static boolean isName(byte[] b, int from, int to) {
        for (int at = from; at < to; at++) {
            if (!isDigit(b[at]) && (b[at] < 'a' || b[at] > 'z')) return false;
        }
        return from < to;
    }

    static boolean isDigit(byte sign) {
        return '0' <= sign && sign <= '9';
    }

    /** Tell whether it is a URI-reference in ASCII, and not empty; those with users or brackets are left out. */
    static boolean isUriReference(byte[] b, int from, int to) {
        int colon = endOf(SEGMENT, b, from, to);
        if (colon < to && b[colon] == ':') return isUri(b, from, to);
        return from < to && isBehindScheme(b, from, to);
    }

    /** Tell whether it is a URI with a scheme, in ASCII; those with users or brackets are left out. */
    static boolean isUri(byte[] b, int from, int to) {
        int colon = endOf(SCHEME, b, from, to);
        boolean scheme = from < colon && colon < to && b[colon] == ':' && b[from] >= 'A';
        return scheme && isBehindScheme(b, colon + 1, to);
    }

    private static boolean isBehindScheme(byte[] b, int from, int to) {
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

    /** Return where the first byte stands that is none of the signs, and no % with two digits. */
    private static int endOf(boolean[] signs, byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            if (b[at] == '%' && signs != SCHEME && to - at > 2 && isHex(b[at + 1]) && isHex(b[at + 2])) {
                at += 3;
            } else if (b[at] >= 0 && signs[b[at]]) {
                at++;
            } else {
                return at;
            }
        }
        return to;
    }

    static boolean isHex(byte sign) {
        return isDigit(sign) || ('a' <= (sign | 0x20) && (sign | 0x20) <= 'f');
    }

    /** Tell whether it is a media type whose parameters are tokens, a space before each at most. */
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

    /** Tell whether it is this word of ASCII. */
    static boolean is(byte[] word, byte[] b, int from, int to) {
        return to - from == word.length && startsWith(word, b, from, to);
    }

    /** Tell whether it begins with this word of ASCII. */
    static boolean startsWith(byte[] word, byte[] b, int from, int to) {
        if (to - from < word.length) return false;
        for (int n = 0; n < word.length; n++) {
            if (b[from + n] != word[n]) return false;
        }
        return true;
    }

    /** Return the bytes of a word of ASCII. */
    static byte[] word(String word) {
        byte[] bytes = new byte[word.length()];
        for (int n = 0; n < bytes.length; n++) bytes[n] = (byte) word.charAt(n);
        return bytes;
    }

    /** Return letters A to Z in lower case, all else as it is. */
    static byte[] lower(byte[] b, int from, int to) {
        byte[] lower = new byte[to - from];
        for (int n = 0; n < lower.length; n++) {
            byte sign = b[from + n];
            lower[n] = 'A' <= sign && sign <= 'Z' ? (byte) (sign | 0x20) : sign;
        }
        return lower;
    }

    /** Return a table of ASCII in which letters, digits, and these signs are true. */
    private static boolean[] signs(String more) {
        boolean[] table = new boolean[128];
        for (char sign = 0; sign < 128; sign++) {
            boolean letter = 'a' <= (sign | 0x20) && (sign | 0x20) <= 'z';
            table[sign] = letter || isDigit((byte) sign) || more.indexOf(sign) >= 0;
        }
        return table;
    }
}
