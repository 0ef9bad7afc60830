package cloudevents_kafka.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads records that it recognizes as valid events, in binary mode or structured mode in JSON. */
final class Reader {
    private static final byte[] CONTENT_TYPE = Text.word("content-type");
    private static final byte[] PREFIX = Text.word("ce_");
    private static final byte[] CLOUDEVENTS = Text.word("application/cloudevents");
    private static final byte[][] JSON = {
        Text.word("application/cloudevents+json"),
        Text.word("application/cloudevents+json; charset=utf-8"),
        Text.word("application/cloudevents+json;charset=utf-8"),
    };
    private static final UTF8String BINARY = UTF8String.fromString("binary");
    private static final UTF8String STRUCTURED = UTF8String.fromString("structured");

    private Reader() {}

    /** Return the row of the event; null for a record that is not recognized and left to Python. */
    static InternalRow read(byte[] value, ArrayData headers, Names constrained, Names known) {
        byte[] contentType = null;
        int count = headers.numElements();
        byte[][] names = new byte[count][];
        for (int n = 0; n < count; n++) {
            if (headers.isNullAt(n) || headers.getStruct(n, 2).isNullAt(0)) return null;
            names[n] = headers.getStruct(n, 2).getUTF8String(0).getBytes();
            if (Text.is(CONTENT_TYPE, names[n], 0, names[n].length)) {
                InternalRow header = headers.getStruct(n, 2);
                if (contentType != null || header.isNullAt(1)) return null; // repeated or null
                contentType = header.getBinary(1);
            }
        }
        if (contentType != null) {
            byte[] lower = Text.lower(contentType, 0, contentType.length);
            // K-09: structured mode if the "value is prefixed with the CloudEvents media type".
            if (Text.startsWith(CLOUDEVENTS, lower, 0, lower.length)) {
                return isJson(lower) ? structured(value, constrained, known) : null;
            }
        }
        return binary(value, names, headers, contentType, constrained);
    }

    private static boolean isJson(byte[] contentType) {
        for (int n = 0; n < JSON.length; n++) {
            if (Text.is(JSON[n], contentType, 0, contentType.length)) return true;
        }
        return false;
    }

    private static InternalRow structured(byte[] value, Names constrained, Names known) {
        if (value == null) return null; // K-08: the value has the event
        Attributes attributes = new Attributes(constrained);
        Document document = new Document(value, known);
        return document.read(attributes) ? attributes.row(document.payload, document.kind, STRUCTURED) : null;
    }

    private static InternalRow binary(byte[] value, byte[][] names, ArrayData headers, byte[] contentType, Names constrained) {
        Attributes attributes = new Attributes(constrained);
        // K-04: content-type "MUST be mapped directly" to datacontenttype.
        if (contentType != null && !attributes.addContentType(contentType, 0, contentType.length)) return null;
        for (int n = 0; n < names.length; n++) {
            // K-05: "attributes are prefixed with ce_"; other headers are not part of the event.
            if (!Text.startsWith(PREFIX, names[n], 0, names[n].length)) continue;
            InternalRow header = headers.getStruct(n, 2);
            if (header.isNullAt(1)) return null;
            byte[] text = header.getBinary(1);
            if (!attributes.add(names[n], PREFIX.length, names[n].length, text, 0, text.length)) return null;
        }
        return attributes.row(value, null, BINARY); // K-03: the value is the data "as-is"; K-07: a null value means without data
    }
}
