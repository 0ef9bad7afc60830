package cloudevents_kafka.spark;

import java.util.Arrays;

/** Names of headers that are those of the binding, or nearly: in another case, or with the prefix of another binding. */
final class HeaderName {
    private static final int FOREIGN = -1;
    private static final int CONTENT_TYPE = 0;
    private static final byte[] CONTENT_TYPE_NAME = Text.word("content-type");
    private static final byte[] CE = Text.word("ce");
    private static final byte[] CLOUDEVENTS = Text.word("cloudevents");
    private static final byte[] PREFIX = Text.word("ce_");
    private static final byte[] DATA = Text.word("data");
    private static final byte[][] CORE = {
        Text.word("specversion"), Text.word("id"), Text.word("source"), Text.word("type"), Text.word("datacontenttype"),
        Text.word("dataschema"), Text.word("subject"), Text.word("time"),
    };
    private static final byte[] COPY = Text.word("ce_datacontenttype");

    private HeaderName() {}

    /** Return the index of the attribute's name in that of a header, 0 for content-type, -1 for others and null. */
    static int attribute(byte[] name) {
        int length = name == null ? 0 : name.length;
        if (length < 4) return FOREIGN;
        if (Text.startsWithAnyCase(CE, name, 0, length)) return name[2] == '_' || name[2] == '-' ? 3 : FOREIGN;
        if (length == CONTENT_TYPE_NAME.length && Text.startsWithAnyCase(CONTENT_TYPE_NAME, name, 0, length)) return CONTENT_TYPE;
        int at = CLOUDEVENTS.length;
        boolean other = length > at + 1 && Text.startsWithAnyCase(CLOUDEVENTS, name, 0, length)
            && (name[at] == ':' || name[at] == '_');
        return other ? at + 1 : FOREIGN;
    }

    /**
     * Return the name of the attribute that a name stands for, or null: in small letters, and without - _ . for
     * extensions only.
     */
    static byte[] folded(byte[] name, int from, int to) {
        byte[] lower = Text.lowerCase(name, from, to);
        if (lower == null) return null;
        if (Text.isName(lower, 0, lower.length)) return Text.is(DATA, lower, 0, lower.length) ? null : lower;
        int length = 0;
        for (int n = 0; n < lower.length; n++) {
            if (lower[n] != '-' && lower[n] != '_' && lower[n] != '.') lower[length++] = lower[n];
        }
        boolean valid = Text.isName(lower, 0, length) && !Text.is(DATA, lower, 0, length)
            && !isCore(lower, length);
        return valid ? Arrays.copyOf(lower, length) : null;
    }

    private static boolean isCore(byte[] name, int length) {
        for (int n = 0; n < CORE.length; n++) {
            if (Text.is(CORE[n], name, 0, length)) return true;
        }
        return false;
    }

    /** Return whether any header but an exact content-type is one of an event in binary mode, or nearly. */
    static boolean isAny(byte[][] names) {
        for (int n = 0; n < names.length; n++) {
            int from = attribute(names[n]);
            if (from > 0 || from == CONTENT_TYPE && !Text.is(CONTENT_TYPE_NAME, names[n], 0, names[n].length)) return true;
        }
        return false;
    }

    /** Return whether another header than that of an event format may be read as content-type, or is nearly one of the binding. */
    static boolean mayBeAmbiguous(byte[][] names) {
        boolean copied = false;
        for (int n = 0; n < names.length; n++) {
            byte[] name = names[n];
            int from = attribute(name);
            if (from == FOREIGN) continue;
            if (from == CONTENT_TYPE ? !Text.is(CONTENT_TYPE_NAME, name, 0, name.length)
                : !Text.startsWith(PREFIX, name, 0, name.length) || !Text.isName(name, from, name.length)) return true;
            if (Text.is(COPY, name, 0, name.length)) {
                if (copied) return true;
                copied = true;
            }
        }
        return false;
    }
}
