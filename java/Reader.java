package cloudevents_kafka.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads valid events, in binary mode or in structured mode in JSON.
 *
 * These valid events are left to Python, as is each record that is not a valid event, since Python
 * names what is wrong: events in other formats; data of structured mode in a charset other than
 * UTF-8 and US-ASCII; extensions that a user registered with a function that accepts values; and
 * JSON if a user registered another format of that name.
 *
 * Lenient reading also reads what known producers write: JSON without its content-type, names of headers
 * with another prefix or case, and what {@link Attributes} corrects. It is Python's wherever several
 * headers may mean the same.
 */
final class Reader {
    private static final byte[] CONTENT_TYPE = Text.word("content-type");
    private static final byte[] PREFIX = Text.word("ce_");
    private static final byte[] DATACONTENTTYPE = Text.word("datacontenttype");
    private static final byte[] CONTENT_TYPE_COPY = Text.word("ce_datacontenttype");
    private static final byte[] CLOUDEVENTS = Text.word("application/cloudevents");
    private static final byte[] JSON = Text.word("application/cloudevents+json");
    private static final UTF8String BINARY = UTF8String.fromString("binary");
    private static final UTF8String STRUCTURED = UTF8String.fromString("structured");

    private static volatile byte[] json = JSON; // the last media type of the JSON format in UTF-8

    private Reader() {}

    /**
     * Return the row of the event; null for a record that is left to Python.
     *
     * @param rules those of lenient reading, or null
     */
    static InternalRow read(byte[] value, ArrayData headers, Extensions known, Rules rules) {
        byte[] contentType = null;
        int count = headers == null ? 0 : headers.numElements();
        byte[][] names = new byte[count][]; // null for headers that are null, have no name or have no value
        for (int n = 0; n < count; n++) {
            if (headers.isNullAt(n)) continue;
            InternalRow header = headers.getStruct(n, 2);
            if (header.isNullAt(0) || header.isNullAt(1)) continue;
            names[n] = header.getUTF8String(0).getBytes();
            if (Text.is(CONTENT_TYPE, names[n], 0, names[n].length)) {
                if (contentType != null) return null; // N-05: repeated
                contentType = header.getBinary(1);
            }
        }
        // K-09: structured mode if the "value is prefixed with the CloudEvents media type".
        if (contentType != null && Text.startsWithAnyCase(CLOUDEVENTS, contentType, 0, contentType.length)) {
            if (!known.readsJson || !isJson(contentType) || rules != null && HeaderName.mayBeAmbiguous(names)) return null;
            return structured(value, new Attributes(known, rules), null);
        }
        if (rules == null) return binary(value, names, headers, contentType, known);
        return HeaderName.isAny(names) ? nearlyBinary(value, names, headers, contentType, known, rules)
            : unmarked(value, contentType, known, rules);
    }

    /** Return whether a media type is that of the JSON format in UTF-8; its parameters need not be valid. */
    private static boolean isJson(byte[] contentType) {
        if (Arrays.equals(contentType, json)) return true;
        int length = contentType.length;
        if (!Text.startsWithAnyCase(JSON, contentType, 0, length)) return false;
        int end = MediaType.afterSpace(contentType, JSON.length, length);
        if (end < length && (contentType[end] != ';' || !Text.isUtf8(contentType) // K-06
            || MediaType.of(contentType, 0, length).otherCharset)) return false; // K-15
        json = contentType;
        return true;
    }

    private static InternalRow structured(byte[] value, Attributes attributes, byte[] ofData) {
        if (value == null) return null; // K-08: the value has the event
        Document document = new Document(value);
        return document.read(attributes, ofData) ? attributes.row(document.payload, document.kind, STRUCTURED) : null;
    }

    /** Read JSON that no header marks as an event. */
    private static InternalRow unmarked(byte[] value, byte[] contentType, Extensions known, Rules rules) {
        if (!known.readsJson) return null;
        byte[] ofData = null;
        if (contentType != null) {
            if (!Text.isString(contentType, 0, contentType.length)) return null;
            MediaType type = MediaType.of(contentType, 0, contentType.length);
            if (!type.valid) return null;
            if (!type.json) ofData = contentType; // it is that of the data
        }
        Attributes attributes = new Attributes(known, rules);
        attributes.unmarked = true;
        attributes.found.addContentType(contentType == null);
        return structured(value, attributes, ofData);
    }

    /** Read attributes in headers whose names have another prefix or case, too. */
    private static InternalRow nearlyBinary(
        byte[] value, byte[][] names, ArrayData headers, byte[] contentType, Extensions known, Rules rules
    ) {
        Attributes attributes = new Attributes(known, rules);
        if (contentType != null && !attributes.addContentType(contentType)) return null;
        byte[] copy = null;
        for (int n = 0; n < names.length; n++) {
            byte[] name = names[n];
            int from = HeaderName.attribute(name);
            if (from < 0) continue;
            byte[] text = headers.getStruct(n, 2).getBinary(1);
            if (from == 0) { // content-type
                if (Text.is(CONTENT_TYPE, name, 0, name.length)) continue;
                // Several are ambiguous, and an event format would change the mode.
                if (attributes.hasContentType() || Text.startsWithAnyCase(CLOUDEVENTS, text, 0, text.length)
                    || !attributes.addContentType(text)) return null;
                attributes.found.addHeader(UTF8String.fromBytes(name), null);
                continue;
            }
            boolean exact = Text.startsWith(PREFIX, name, 0, name.length);
            int to = name.length;
            if (!exact || !Text.isName(name, from, to)) {
                byte[] folded = HeaderName.folded(name, from, to);
                if (folded == null) return null;
                if (exact && folded.length < to - from) { // only the name after ce_ is another one
                    attributes.found.addMember(UTF8String.fromBytes(name, from, to - from), folded);
                } else {
                    attributes.found.addHeader(UTF8String.fromBytes(name), folded);
                }
                name = folded;
                from = 0;
                to = folded.length;
            }
            if (Text.is(DATACONTENTTYPE, name, from, to)) {
                if (copy != null) return null;
                copy = text;
            } else if (!attributes.add(name, from, to, text, 0, text.length)) {
                return null;
            }
        }
        Deviations found = attributes.found;
        if (copy != null && !attributes.isContentType(copy)) {
            if (attributes.hasContentType() || Text.startsWithAnyCase(CLOUDEVENTS, copy, 0, copy.length)
                || !attributes.addContentType(copy)) return null;
            found.addCopy();
        }
        if (found.named > 0 && found.valued > 0) return null; // the order of attributes, and which are left out, is Python's
        return attributes.row(value, null, BINARY);
    }

    private static InternalRow binary(byte[] value, byte[][] names, ArrayData headers, byte[] contentType, Extensions known) {
        Attributes attributes = new Attributes(known, null);
        // K-04: content-type "MUST be mapped directly" to datacontenttype.
        if (contentType != null && !attributes.addContentType(contentType)) return null;
        boolean copied = false;
        for (int n = 0; n < names.length; n++) {
            byte[] name = names[n];
            // K-05: "attributes are prefixed with ce_"; other headers are not part of the event.
            if (name == null || name.length == PREFIX.length || !Text.startsWith(PREFIX, name, 0, name.length)) continue;
            byte[] text = headers.getStruct(n, 2).getBinary(1);
            if (Text.is(CONTENT_TYPE_COPY, name, 0, name.length)) { // a copy that agrees does no harm
                if (copied || !attributes.isContentType(text)) return null;
                copied = true;
            } else if (!attributes.add(name, PREFIX.length, name.length, text, 0, text.length)) {
                return null;
            }
        }
        return attributes.row(value, null, BINARY); // K-03: the value is the data "as-is"; K-07: a null value means without data
    }
}
