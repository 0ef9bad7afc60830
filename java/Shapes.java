package cloudevents_kafka.spark;

import org.apache.spark.unsafe.types.UTF8String;

/** The shapes of schemas by their texts: {@code json} and {@code avro}, each followed by a newline. */
final class Shapes {
    private static final int CACHE_SIZE = 64;
    private static final UTF8String JSON = UTF8String.fromString("json\n");
    private static volatile Object[][] cache = {}; // replaced, never changed: threads need no lock

    private Shapes() {}

    static boolean fits(byte[] payload, UTF8String text) {
        Object shape = find(text);
        return shape instanceof JsonShape ? ((JsonShape) shape).fits(payload) : ((AvroShape) shape).fits(payload);
    }

    private static Object find(UTF8String text) {
        Object[][] entries = cache;
        // Spark passes the same objects with all rows of a query.
        for (int n = 0; n < entries.length; n++) {
            if (entries[n][0] == text) return entries[n][1];
        }
        String words = text.toString().substring(JSON.numBytes());
        Object shape = text.startsWith(JSON) ? (Object) JsonShape.of(words) : AvroShape.of(words);
        Object[][] more = new Object[Math.min(entries.length + 1, CACHE_SIZE)][];
        more[0] = new Object[] {text, shape};
        System.arraycopy(entries, 0, more, 1, more.length - 1);
        cache = more;
        return shape;
    }
}
