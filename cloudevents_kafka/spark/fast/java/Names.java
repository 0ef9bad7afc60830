package cloudevents_kafka.spark;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Names of extensions, given as a text with commas between them.
 *
 * Each query has two such texts, and gives them with every row; those met last are remembered.
 */
final class Names {
    private static final int REMEMBERED = 16;
    private static volatile Names[] met = {}; // never changed, always replaced: threads share it without a lock

    private final UTF8String text;
    private final Set names = new HashSet();

    private Names(UTF8String text) {
        this.text = text;
        String[] each = text.toString().split(",");
        for (int n = 0; n < each.length; n++) names.add(UTF8String.fromString(each[n]));
    }

    static Names of(UTF8String text) {
        Names[] known = met;
        for (int n = 0; n < known.length; n++) {
            if (known[n].text.equals(text)) return known[n];
        }
        Names made = new Names(text.copy());
        Names[] more = new Names[Math.min(known.length + 1, REMEMBERED)];
        more[0] = made;
        System.arraycopy(known, 0, more, 1, more.length - 1);
        met = more;
        return made;
    }

    boolean contain(byte[] b, int from, int to) {
        return names.contains(UTF8String.fromBytes(b, from, to - from));
    }
}
