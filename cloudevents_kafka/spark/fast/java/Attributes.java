package cloudevents_kafka.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The attributes of one event, each checked when it is added.
 *
 * An attribute that may break a rule is refused; the record is then left to Python.
 */
final class Attributes {
    private static final byte[] ID = Text.word("id");
    private static final byte[] SOURCE = Text.word("source");
    private static final byte[] TYPE = Text.word("type");
    private static final byte[] SPECVERSION = Text.word("specversion");
    private static final byte[] SUBJECT = Text.word("subject");
    private static final byte[] TIME = Text.word("time");
    private static final byte[] DATACONTENTTYPE = Text.word("datacontenttype");
    private static final byte[] DATASCHEMA = Text.word("dataschema");
    private static final byte[] DATA = Text.word("data");
    private static final byte[] VERSION = Text.word("1.0");
    private static final int MAX_EXTENSIONS = 64; // each is compared with all others
    private static final int FIELDS = 15; // of an event's row: those below, and the error as the last
    private static final int AT_ID = 0, AT_SOURCE = 1, AT_TYPE = 2, AT_SPECVERSION = 3, AT_SUBJECT = 4, AT_TIME = 5,
        AT_TIME_TEXT = 6, AT_DATACONTENTTYPE = 7, AT_DATASCHEMA = 8, AT_EXTENSIONS = 9, AT_EXTENSION_TYPES = 10,
        AT_DATA = 11, AT_DATA_KIND = 12, AT_MODE = 13;

    private final Names constrained;
    private final Object[] fields = new Object[FIELDS];
    private UTF8String[] names = new UTF8String[4];
    private UTF8String[] texts = new UTF8String[4];
    private UTF8String[] types = null; // of the extensions, null for texts
    private int extensions = 0;

    /** @param constrained names of extensions that have a type or a rule: these are refused */
    Attributes(Names constrained) {
        this.constrained = constrained;
    }

    /** Add an attribute; return false if its name or text is not recognized, or its name was added before. */
    boolean add(byte[] n, int from, int to, byte[] b, int begin, int end) {
        switch (to - from) {
            case 2:
                if (Text.is(ID, n, from, to)) return text(AT_ID, b, begin, end);
                break;
            case 4:
                if (Text.is(TYPE, n, from, to)) return text(AT_TYPE, b, begin, end);
                if (Text.is(TIME, n, from, to)) return time(b, begin, end);
                if (Text.is(DATA, n, from, to)) return false; // N-04: reserved for the data
                break;
            case 6:
                if (Text.is(SOURCE, n, from, to)) return Text.isUriReference(b, begin, end) && put(AT_SOURCE, b, begin, end);
                break;
            case 7:
                if (Text.is(SUBJECT, n, from, to)) return text(AT_SUBJECT, b, begin, end);
                break;
            case 10:
                if (Text.is(DATASCHEMA, n, from, to)) return Text.isUri(b, begin, end) && put(AT_DATASCHEMA, b, begin, end);
                break;
            case 11:
                if (Text.is(SPECVERSION, n, from, to)) return Text.is(VERSION, b, begin, end) && put(AT_SPECVERSION, b, begin, end);
                break;
            case 15:
                if (Text.is(DATACONTENTTYPE, n, from, to)) return false; // K-04: its header has no prefix
                break;
        }
        return addExtension(n, from, to, b, begin, end);
    }

    /** Add datacontenttype, whose header has another name. */
    boolean addContentType(byte[] b, int begin, int end) {
        return Text.isMediaType(b, begin, end) && put(AT_DATACONTENTTYPE, b, begin, end);
    }

    private boolean text(int at, byte[] b, int begin, int end) {
        return Text.isString(b, begin, end) && put(at, b, begin, end);
    }

    private boolean time(byte[] b, int begin, int end) {
        Long micros = Time.micros(b, begin, end);
        fields[AT_TIME] = micros;
        return micros != null && put(AT_TIME_TEXT, b, begin, end);
    }

    private boolean put(int at, byte[] b, int begin, int end) {
        if (fields[at] != null) return false; // N-05: each attribute at most once
        fields[at] = UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    /** Add an extension. */
    boolean addExtension(byte[] n, int from, int to, byte[] b, int begin, int end) {
        if (extensions == MAX_EXTENSIONS || !Text.isName(n, from, to) || constrained.contain(n, from, to)) return false;
        if (!Text.isString(b, begin, end)) return false;
        UTF8String name = UTF8String.fromBytes(n, from, to - from);
        for (int k = 0; k < extensions; k++) {
            if (names[k].equals(name)) return false; // N-05
        }
        if (extensions == names.length) {
            names = (UTF8String[]) Arrays.copyOf(names, 2 * extensions);
            texts = (UTF8String[]) Arrays.copyOf(texts, 2 * extensions);
        }
        names[extensions] = name;
        texts[extensions++] = UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    /** Add an extension of this type, which is a number or boolean in the document. */
    boolean addExtension(byte[] n, int from, int to, byte[] b, int begin, int end, UTF8String type) {
        if (!addExtension(n, from, to, b, begin, end)) return false;
        if (types == null) types = new UTF8String[MAX_EXTENSIONS];
        types[extensions - 1] = type;
        return true;
    }

    /** Return datacontenttype in lower case, or null. */
    byte[] contentType() {
        UTF8String text = (UTF8String) fields[AT_DATACONTENTTYPE];
        if (text == null) return null;
        byte[] bytes = text.getBytes();
        return Text.lower(bytes, 0, bytes.length);
    }

    /** Return the row of the event, or null if a required attribute is missing. */
    InternalRow row(byte[] data, UTF8String kind, UTF8String mode) {
        for (int at = AT_ID; at <= AT_SPECVERSION; at++) {
            if (fields[at] == null) return null; // REQUIRED
        }
        fields[AT_EXTENSIONS] = new ArrayBasedMapData(array(names, extensions), array(texts, extensions));
        fields[AT_EXTENSION_TYPES] = extensionTypes();
        fields[AT_DATA] = data;
        fields[AT_DATA_KIND] = kind;
        fields[AT_MODE] = mode;
        return new GenericInternalRow(fields);
    }

    /** Return the types of the extensions that are not texts, or null if all are. */
    private ArrayBasedMapData extensionTypes() {
        if (types == null) return null;
        UTF8String[] typed = new UTF8String[extensions];
        int count = 0;
        for (int n = 0; n < extensions; n++) {
            if (types[n] == null) continue;
            typed[count] = names[n];
            types[count++] = types[n];
        }
        return new ArrayBasedMapData(array(typed, count), array(types, count));
    }

    private static GenericArrayData array(UTF8String[] texts, int count) {
        return new GenericArrayData(Arrays.copyOf(texts, count));
    }
}
