package cloudevents_kafka.spark;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.unsafe.types.UTF8String;

/** Names of extensions, given as a text with commas between them; the last two such texts are remembered. */
final class Names {
    private static volatile Names last = new Names(UTF8String.fromString(""));
    private static volatile Names other = last;

    private final UTF8String text;
    private final Set names = new HashSet();

    private Names(UTF8String text) {
        this.text = text;
        String[] each = text.toString().split(",");
        for (int n = 0; n < each.length; n++) names.add(UTF8String.fromString(each[n]));
    }

    static Names of(UTF8String text) {
        Names known = last;
        if (known.text.equals(text)) return known;
        known = other;
        if (!known.text.equals(text)) {
            known = new Names(text.copy());
            other = last;
            last = known;
        }
        return known;
    }

    boolean contain(byte[] b, int from, int to) {
        return names.contains(UTF8String.fromBytes(b, from, to - from));
    }
}
