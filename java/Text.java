package cloudevents_kafka.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Texts, which are bytes of UTF-8 {@code b[from..to)}. No method throws for any bytes. */
final class Text {
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGH = 0x8080808080808080L; // the highest bit of each byte
    private static final int WORD = 8;
    private static final int MALFORMED = -1;

    private Text() {}

    /** Return whether a text is a String of the core specification; it may be empty. */
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
        return true;
    }

    /** T-06, T-07: no control characters U+0080 to U+009F, no noncharacters. */
    private static boolean isForbidden(int point) {
        return point < 0xA0 || (point & 0xFFFE) == 0xFFFE || (0xFDD0 <= point && point <= 0xFDEF);
    }

    /** Return bytes as words, for {@link #afterPlain}. */
    static ByteBuffer words(byte[] b) {
        return ByteBuffer.wrap(b).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Return the index of the first byte that is not plain, or the length.
     *
     * Not plain are control characters, the quotation mark, the backslash, and what is not ASCII.
     */
    static int afterPlain(ByteBuffer words, byte[] b, int from) {
        int at = from;
        for (; b.length - at >= WORD; at += WORD) {
            long word = words.getLong(at);
            long quotes = word ^ '"' * ONES, backslashes = word ^ '\\' * ONES, deletes = word ^ 0x7F * ONES;
            // A difference sets the highest bit of each byte that is too low; it may carry into later bytes only.
            long found = ((word - ' ' * ONES) & ~word | (quotes - ONES) & ~quotes | (backslashes - ONES) & ~backslashes
                | (deletes - ONES) & ~deletes | word) & HIGH;
            if (found != 0) return at + Long.numberOfTrailingZeros(found) / WORD;
        }
        while (at < b.length && b[at] >= ' ' && b[at] != '"' && b[at] != '\\' && b[at] != 0x7F) at++;
        return at;
    }

    /** Return whether bytes are UTF-8 without surrogates and overlong forms. */
    static boolean isUtf8(ByteBuffer words, byte[] b) {
        int at = 0;
        while (at < b.length) {
            if (b[at] >= 0) {
                at++;
                while (b.length - at >= WORD && (words.getLong(at) & HIGH) == 0) at += WORD;
            } else {
                int point = codePoint(b, at, b.length);
                if (point == MALFORMED) return false;
                at += lengthOf(point);
            }
        }
        return true;
    }

    /** Return whether all bytes are UTF-8. */
    static boolean isUtf8(byte[] b) {
        return isUtf8(words(b), b);
    }

    static boolean isAscii(byte[] b) {
        for (int at = 0; at < b.length; at++) {
            if (b[at] < 0) return false;
        }
        return true;
    }

    /** Return the number of bytes of a character that is not ASCII. */
    static int lengthOf(int point) {
        return point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    }

    /** Return the character that begins at a byte above 0x7F, or -1. */
    static int codePoint(byte[] b, int at, int to) {
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

    /** Write a character, not a surrogate, as UTF-8; return the index after it. */
    static int put(int point, byte[] b, int at) {
        if (point < 0x80) {
            b[at++] = (byte) point;
            return at;
        }
        int more = lengthOf(point) - 1;
        b[at++] = (byte) (0xFC << 5 - more | point >> 6 * more);
        while (more > 0) b[at++] = (byte) (0x80 | (point >> 6 * --more & 0x3F));
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

    static boolean isHex(byte c) {
        return isDigit(c) || ('a' <= (c | 0x20) && (c | 0x20) <= 'f');
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

    /** Return whether a text begins with this word of ASCII in lower case, in any case. */
    static boolean startsWithAnyCase(byte[] word, byte[] b, int from, int to) {
        if (to - from < word.length) return false;
        for (int n = 0; n < word.length; n++) {
            if (lower(b[from + n]) != word[n]) return false;
        }
        return true;
    }

    /** Return a text of ASCII in lower case, or null for another one. */
    static byte[] lowerCase(byte[] b, int from, int to) {
        byte[] text = new byte[to - from];
        for (int n = 0; n < text.length; n++) {
            if (b[from + n] < 0) return null;
            text[n] = lower(b[from + n]);
        }
        return text;
    }

    /** Return whether a text has quotation marks around at least one character. */
    static boolean isQuoted(byte[] b, int from, int to) {
        return to - from > 2 && b[from] == '"' && b[to - 1] == '"';
    }

    private static byte lower(byte c) {
        return 'A' <= c && c <= 'Z' ? (byte) (c | 0x20) : c;
    }

    /** Return the bytes of a word of ASCII. */
    static byte[] word(String word) {
        return word.getBytes(StandardCharsets.US_ASCII);
    }

    /** Return a table of ASCII in which letters, digits and these characters are true. */
    static boolean[] table(String more) {
        boolean[] table = new boolean[128];
        for (char c = 0; c < 128; c++) {
            boolean letter = 'a' <= (c | 0x20) && (c | 0x20) <= 'z';
            table[c] = letter || isDigit((byte) c) || more.indexOf(c) >= 0;
        }
        return table;
    }
}
