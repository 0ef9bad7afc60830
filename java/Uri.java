package cloudevents_kafka.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** URIs and URI-references of RFC 3986 with the non-ASCII characters of IRIs; texts are Strings. */
final class Uri {
    private static final boolean[] HOST = Text.table("!$&'()*+,-.;=_~");
    private static final boolean[] USER = Text.table("!$&'()*+,-.;=_~:");
    private static final boolean[] PATH = Text.table("!$&'()*+,-.;=_~:@/");
    private static final boolean[] QUERY = Text.table("!$&'()*+,-.;=_~:@/?");
    private static final boolean[] SCHEME = Text.table("+-.");
    private static final boolean[] FUTURE = Text.table("._~!$&'()*+,;=:-"); // an address of a later version
    private static final int HEXTETS = 8;

    private Uri() {}

    /** Return whether a text is a URI-reference, which may be empty. */
    static boolean isReference(byte[] b, int from, int to) {
        int scheme = afterScheme(b, from, to);
        if (scheme > 0) return isAfterScheme(b, scheme, to);
        for (int at = from; at < to && b[at] != '/' && b[at] != '?' && b[at] != '#'; at++) {
            if (b[at] == ':') return false; // RFC 3986 4.2: "a segment that contains a colon" cannot be the first
        }
        return isAfterScheme(b, from, to);
    }

    /** Return whether a text is a URI with a scheme. */
    static boolean isUri(byte[] b, int from, int to) {
        int scheme = afterScheme(b, from, to);
        return scheme > 0 && isAfterScheme(b, scheme, to);
    }

    /** Return the index after the scheme and its colon, or -1. */
    private static int afterScheme(byte[] b, int from, int to) {
        if (from == to || b[from] < 'A') return -1; // not a letter: a digit, + - or .
        int at = from;
        while (at < to && b[at] >= 0 && SCHEME[b[at]]) at++;
        return at > from && at < to && b[at] == ':' ? at + 1 : -1;
    }

    private static boolean isAfterScheme(byte[] b, int from, int to) {
        int at = from;
        if (to - at > 1 && b[at] == '/' && b[at + 1] == '/') {
            at = afterAuthority(b, at + 2, to);
            if (at < 0 || (at < to && b[at] != '/' && b[at] != '?' && b[at] != '#')) return false;
        }
        at = after(PATH, b, at, to);
        if (at < to && b[at] == '?') at = after(QUERY, b, at + 1, to);
        if (at < to && b[at] == '#') at = after(QUERY, b, at + 1, to);
        return at == to;
    }

    private static int afterAuthority(byte[] b, int from, int to) {
        int at = after(USER, b, from, to);
        at = at < to && b[at] == '@' ? at + 1 : from;
        if (at < to && b[at] == '[') {
            at = afterAddress(b, at + 1, to);
            if (at < 0) return -1;
        } else {
            at = after(HOST, b, at, to);
        }
        if (at < to && b[at] == ':') {
            do at++; while (at < to && Text.isDigit(b[at]));
        }
        return at;
    }

    /** Return the index of the first character that is not in the table, not encoded and not of an IRI. */
    private static int after(boolean[] table, byte[] b, int from, int to) {
        int at = from;
        while (at < to) {
            if (b[at] < 0) {
                int point = Text.codePoint(b, at, to);
                if (point < 0 || isSpace(point)) return at;
                at += Text.lengthOf(point);
            } else if (table[b[at]]) {
                at++;
            } else if (b[at] == '%' && to - at > 2 && Text.isHex(b[at + 1]) && Text.isHex(b[at + 2])) {
                at += 3;
            } else {
                return at;
            }
        }
        return to;
    }

    /** Return whether a character that is not ASCII and no control character is white space. */
    private static boolean isSpace(int point) {
        return point == 0xA0 || point == 0x1680 || (0x2000 <= point && point <= 0x200A) || point == 0x2028
            || point == 0x2029 || point == 0x202F || point == 0x205F || point == 0x3000;
    }

    /** Return the index after an address in brackets, of which the first has been read, or -1. */
    private static int afterAddress(byte[] b, int from, int to) {
        int end = from;
        while (end < to && b[end] != ']') end++;
        if (end == to || end == from) return -1;
        boolean valid = (b[from] | 0x20) == 'v' ? isFuture(b, from + 1, end)
            : isIpv6(new String(b, from, end - from, StandardCharsets.ISO_8859_1));
        return valid ? end + 1 : -1;
    }

    private static boolean isFuture(byte[] b, int from, int to) {
        int dot = from;
        while (dot < to && Text.isHex(b[dot])) dot++;
        if (dot == from || dot == to || b[dot] != '.') return false;
        int at = dot + 1;
        while (at < to && b[at] >= 0 && FUTURE[b[at]]) at++;
        return at == to && at > dot + 1;
    }

    private static boolean isIpv6(String text) {
        String[] parts = text.split(":", -1);
        int last = parts.length - 1;
        if (last < 2) return false;
        if (parts[last].indexOf('.') >= 0) {
            if (!isIpv4(parts[last])) return false;
            parts = (String[]) Arrays.copyOf(parts, parts.length + 1);
            parts[last] = "0"; // two hextets for the four octets
            parts[++last] = "0";
        }
        int gap = -1;
        for (int n = 1; n < last; n++) {
            if (!parts[n].isEmpty()) continue;
            if (gap >= 0) return false;
            gap = n;
        }
        if (gap < 0) return parts.length == HEXTETS && areHextets(parts, 0, parts.length);
        int before = gap, after = last - gap;
        if (parts[0].isEmpty() && --before > 0) return false;
        if (parts[last].isEmpty() && --after > 0) return false;
        return before + after < HEXTETS && areHextets(parts, 0, before)
            && areHextets(parts, parts.length - after, parts.length);
    }

    private static boolean areHextets(String[] parts, int from, int to) {
        for (int n = from; n < to; n++) {
            int length = parts[n].length();
            if (length < 1 || length > 4) return false;
            for (int at = 0; at < length; at++) {
                if (!Text.isHex((byte) parts[n].charAt(at))) return false;
            }
        }
        return true;
    }

    private static boolean isIpv4(String text) {
        String[] octets = text.split("\\.", -1);
        if (octets.length != 4) return false;
        for (int n = 0; n < octets.length; n++) {
            int length = octets[n].length(), value = 0;
            if (length < 1 || length > 3 || (length > 1 && octets[n].charAt(0) == '0')) return false;
            for (int at = 0; at < length; at++) {
                if (!Text.isDigit((byte) octets[n].charAt(at))) return false;
                value = value * 10 + (octets[n].charAt(at) - '0');
            }
            if (value > 255) return false;
        }
        return true;
    }
}
