package cloudevents_kafka.spark;

import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes valid events, in binary mode or in structured mode in JSON, with the bytes that Python writes.
 *
 * These valid events are left to Python, as is each row that is not a valid event: those with types of
 * extensions in a column; data of structured mode that is text or a message of Protobuf, or JSON in another
 * charset or with escaped surrogates; and what {@link Reader} leaves to Python.
 */
final class Writer {
    private static final String[] NAMES = {
        "specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time",
    };
    private static final int CONTENT_TYPE = 4;
    private static final byte[][] WORDS = new byte[NAMES.length][]; // the names
    private static final UTF8String[] HEADERS = new UTF8String[NAMES.length]; // K-05: "are prefixed with ce_"
    private static final UTF8String PREFIX = UTF8String.fromString("ce_");
    private static final UTF8String VERSION = UTF8String.fromString("1.0");
    private static final UTF8String BYTES = UTF8String.fromString("bytes");
    private static final UTF8String TEXT = UTF8String.fromString("text");
    private static final UTF8String JSON = UTF8String.fromString("json");
    private static final UTF8String INTEGER = UTF8String.fromString("Integer");
    private static final UTF8String BOOLEAN = UTF8String.fromString("Boolean");
    private static final byte[] CLOUDEVENTS = Text.word("application/cloudevents");
    private static final byte[] IMPLIED = Text.word("application/json");
    private static final byte[] DATA = Text.word(",\"data\":");
    private static final byte[] DATA_BASE64 = Text.word(",\"data_base64\":\"");
    private static final InternalRow STRUCTURED;

    static {
        for (int n = 0; n < NAMES.length; n++) {
            WORDS[n] = Text.word(NAMES[n]);
            // K-04: content-type is "mapped directly"
            HEADERS[n] = UTF8String.fromString(n == CONTENT_TYPE ? "content-type" : "ce_" + NAMES[n]);
        }
        STRUCTURED = header(HEADERS[CONTENT_TYPE], Text.word("application/cloudevents+json"));
    }

    private final UTF8String[] core;
    private final Attributes attributes;
    private final Extensions known;
    private final byte[] data;
    private final boolean bytes, json; // the kind of the data; otherwise it is text
    private byte[] b; // a JSON document
    private int length = 0;

    private Writer(UTF8String[] core, Attributes attributes, Extensions known, byte[] data, UTF8String kind) {
        this.core = core;
        this.attributes = attributes;
        this.known = known;
        this.data = data;
        bytes = kind == null || kind.equals(BYTES);
        json = kind != null && kind.equals(JSON);
    }

    /** Return the value and the headers of a record; null for a row that is left to Python. */
    static InternalRow write(
        UTF8String[] core, ArrayData extensions, byte[] data, UTF8String kind, boolean structured, Extensions known
    ) {
        if (core[0] == null) core[0] = VERSION;
        Attributes attributes = new Attributes(known, null);
        if (!addCore(attributes, core) || !addExtensions(attributes, extensions) || !attributes.isComplete()) return null;
        Writer writer = new Writer(core, attributes, known, data, kind);
        if (!writer.bytes && !writer.json && !kind.equals(TEXT)) return null;
        return structured ? writer.structured() : writer.binary();
    }

    private static boolean addCore(Attributes attributes, UTF8String[] core) {
        for (int n = 0; n < core.length; n++) {
            if (core[n] == null) continue;
            byte[] text = core[n].getBytes();
            // A header of binary mode with an event format would mean structured mode.
            if (n == CONTENT_TYPE && Text.startsWithAnyCase(CLOUDEVENTS, text, 0, text.length)) return false;
            if (!attributes.add(WORDS[n], 0, WORDS[n].length, text, 0, text.length)) return false;
        }
        return true;
    }

    private static boolean addExtensions(Attributes attributes, ArrayData extensions) {
        for (int n = 0; n < extensions.numElements(); n++) {
            InternalRow entry = extensions.getStruct(n, 3);
            if (entry.isNullAt(0) || entry.isNullAt(1) || !entry.isNullAt(2)) return false;
            byte[] name = entry.getUTF8String(0).getBytes(), text = entry.getUTF8String(1).getBytes();
            if (!Text.isString(text, 0, text.length)) return false;
            if (!attributes.addTyped(name, 0, name.length, text, 0, text.length, null)) return false;
        }
        return true;
    }

    private static InternalRow header(UTF8String name, byte[] value) {
        return new GenericInternalRow(new Object[] {name, value});
    }

    private static InternalRow record(byte[] value, Object[] headers) {
        return new GenericInternalRow(new Object[] {value, new GenericArrayData(headers)});
    }

    private InternalRow binary() {
        boolean implied = json && data != null && core[CONTENT_TYPE] == null;
        // Only the content type shows the kind of data that is not bytes.
        if (implied ? !isJson() : !bytes && data != null && core[CONTENT_TYPE] == null) return null;
        Object[] headers = new Object[core.length + attributes.size() + 1];
        int count = 0;
        for (int n = 0; n < core.length; n++) {
            if (core[n] != null) headers[count++] = header(HEADERS[n], core[n].getBytes());
        }
        for (int n = 0; n < attributes.size(); n++) {
            UTF8String name = UTF8String.concat(new UTF8String[] {PREFIX, attributes.name(n)});
            headers[count++] = header(name, attributes.text(n).getBytes());
        }
        if (implied) headers[count++] = header(HEADERS[CONTENT_TYPE], IMPLIED);
        return record(data, Arrays.copyOf(headers, count));
    }

    private boolean isJson() {
        return new Document(data).isOneValue();
    }

    private InternalRow structured() {
        MediaType type = core[CONTENT_TYPE] == null ? null : attributes.contentType;
        boolean asJson = type == null ? json : type.json && (bytes || json);
        if (data != null && (asJson ? type != null && (type.otherCharset || type.ascii) || !isJson() : !bytes)) return null;
        b = new byte[256 + (data == null ? 0 : asJson ? data.length : data.length / 3 * 4 + 4)];
        for (int n = 0; n < core.length; n++) {
            if (core[n] != null) addMember(WORDS[n], core[n].getBytes(), true);
        }
        for (int n = 0; n < attributes.size(); n++) {
            byte[] name = attributes.name(n).getBytes();
            Extension extension = known.find(name, 0, name.length);
            // J-03: a Boolean is true or false, an Integer a number
            boolean isText = extension == null || !INTEGER.equals(extension.type) && !BOOLEAN.equals(extension.type);
            addMember(name, attributes.text(n).getBytes(), isText);
        }
        if (data != null) {
            add(asJson ? DATA : DATA_BASE64);
            add(asJson ? data : Base64.getEncoder().encode(data)); // J-06: Binary is data_base64
            if (!asJson) add('"');
        }
        add('}');
        return record(Arrays.copyOf(b, length), new Object[] {STRUCTURED});
    }

    private void addMember(byte[] name, byte[] text, boolean isText) {
        add(length == 0 ? '{' : ',');
        add('"');
        add(name);
        add('"');
        add(':');
        if (!isText) {
            add(text);
            return;
        }
        add('"');
        int from = 0;
        for (int at = 0; at < text.length; at++) {
            if (text[at] != '"' && text[at] != '\\') continue; // Strings have no control characters
            add(text, from, at);
            add('\\');
            from = at;
        }
        add(text, from, text.length);
        add('"');
    }

    private void add(char c) {
        reserve(1);
        b[length++] = (byte) c;
    }

    private void add(byte[] text) {
        add(text, 0, text.length);
    }

    private void add(byte[] text, int from, int to) {
        reserve(to - from);
        System.arraycopy(text, from, b, length, to - from);
        length += to - from;
    }

    private void reserve(int more) {
        if (b.length - length < more) b = Arrays.copyOf(b, 2 * b.length + more);
    }
}
