package cloudevents_kafka.spark;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A set of names of extensions, from a text with commas between them.
 *
 * Each query passes two such texts with every row; the last sets are cached.
 */
final class Names {
    private static final int CACHE_SIZE = 16;
    private static volatile Names[] cache = {}; // replaced, never changed: threads need no lock

    private final UTF8String text;
    private final Set names = new HashSet();

    private Names(UTF8String text) {
        this.text = text;
        String[] each = text.toString().split(",");
        for (int n = 0; n < each.length; n++) names.add(UTF8String.fromString(each[n]));
    }

    static Names of(UTF8String text) {
        Names[] known = cache;
        for (int n = 0; n < known.length; n++) {
            if (known[n].text.equals(text)) return known[n];
        }
        Names names = new Names(text.copy());
        Names[] more = new Names[Math.min(known.length + 1, CACHE_SIZE)];
        more[0] = names;
        System.arraycopy(known, 0, more, 1, more.length - 1);
        cache = more;
        return names;
    }

    boolean contain(byte[] b, int from, int to) {
        return names.contains(UTF8String.fromBytes(b, from, to - from));
    }
}
