package cloudevents_kafka.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The attributes of one event as they are found, each checked when it is added.
 *
 * Not one is kept that might break a rule; who is told so leaves the record to the converters.
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
    private static final int MOST = 64; // extensions, as each is compared with all
    private static final int FIELDS = 15; // of an event's row, in the order below, its error the last
    private static final int AT_ID = 0, AT_SOURCE = 1, AT_TYPE = 2, AT_SPECVERSION = 3, AT_SUBJECT = 4, AT_TIME = 5,
        AT_TIME_TEXT = 6, AT_DATACONTENTTYPE = 7, AT_DATASCHEMA = 8, AT_EXTENSIONS = 9, AT_EXTENSION_TYPES = 10,
        AT_DATA = 11, AT_DATA_KIND = 12, AT_MODE = 13;

    private final Names ruled;
    private final Object[] fields = new Object[FIELDS];
    private UTF8String[] names = new UTF8String[4];
    private UTF8String[] texts = new UTF8String[4];
    private UTF8String[] types = null; // of extensions that are no texts, null for each that is one
    private int extensions = 0;

    /** @param ruled names of extensions that are more than any text: these are not for here */
    Attributes(Names ruled) {
        this.ruled = ruled;
    }

    /** Take an attribute; false where its name, its text, or a second one of its name is not surely good. */
    boolean add(byte[] n, int from, int to, byte[] b, int begin, int end) {
        switch (to - from) {
            case 2:
                if (Text.is(ID, n, from, to)) return text(AT_ID, b, begin, end);
                break;
            case 4:
                if (Text.is(TYPE, n, from, to)) return text(AT_TYPE, b, begin, end);
                if (Text.is(TIME, n, from, to)) return time(b, begin, end);
                if (Text.is(DATA, n, from, to)) return false;
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
                if (Text.is(DATACONTENTTYPE, n, from, to)) return false;
                break;
        }
        return addExtension(n, from, to, b, begin, end);
    }

    /** Take datacontenttype, which no header names by this name. */
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
        if (fields[at] != null) return false;
        fields[at] = UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    /** Take an attribute that is not of the core. */
    boolean addExtension(byte[] n, int from, int to, byte[] b, int begin, int end) {
        if (extensions == MOST || !Text.isName(n, from, to) || ruled.contain(n, from, to)) return false;
        if (!Text.isString(b, begin, end)) return false;
        UTF8String name = UTF8String.fromBytes(n, from, to - from);
        for (int k = 0; k < extensions; k++) {
            if (names[k].equals(name)) return false;
        }
        if (extensions == names.length) {
            names = longer(names);
            texts = longer(texts);
        }
        names[extensions] = name;
        texts[extensions++] = UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    /** Take an extension that a document has as a number or Boolean, of this type. */
    boolean addExtension(byte[] n, int from, int to, byte[] b, int begin, int end, UTF8String type) {
        if (!addExtension(n, from, to, b, begin, end)) return false;
        if (types == null) types = new UTF8String[MOST];
        types[extensions - 1] = type;
        return true;
    }

    private static UTF8String[] longer(UTF8String[] texts) {
        UTF8String[] longer = new UTF8String[2 * texts.length];
        System.arraycopy(texts, 0, longer, 0, texts.length);
        return longer;
    }

    /** Return datacontenttype in lower case, null where there is none. */
    byte[] contentType() {
        UTF8String text = (UTF8String) fields[AT_DATACONTENTTYPE];
        if (text == null) return null;
        byte[] bytes = text.getBytes();
        return Text.lower(bytes, 0, bytes.length);
    }

    /** Return the event's row, null where a required attribute is missing. */
    InternalRow row(byte[] data, UTF8String kind, UTF8String mode) {
        for (int at = AT_ID; at <= AT_SPECVERSION; at++) {
            if (fields[at] == null) return null;
        }
        fields[AT_EXTENSIONS] = new ArrayBasedMapData(array(names, extensions), array(texts, extensions));
        fields[AT_EXTENSION_TYPES] = extensionTypes();
        fields[AT_DATA] = data;
        fields[AT_DATA_KIND] = kind;
        fields[AT_MODE] = mode;
        return new GenericInternalRow(fields);
    }

    /** Return the types of the extensions that are no texts, null where all are. */
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
        Object[] array = new Object[count];
        System.arraycopy(texts, 0, array, 0, count);
        return new GenericArrayData(array);
    }
}
