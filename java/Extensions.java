package cloudevents_kafka.spark;

import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The known extensions by name, from two texts with commas between entries.
 *
 * The first text names extensions that Python reads, and {@code +json} if the JSON format is a
 * user's; the second has descriptions of {@link Extension}. Each query passes both texts with every
 * row; the last tables are cached.
 */
final class Extensions {
    private static final int CACHE_SIZE = 16;
    private static final String OTHER_JSON = "+json";
    private static volatile Extensions[] cache = {}; // replaced, never changed: threads need no lock
    private static volatile Object[] last = new Object[3]; // the last two texts and their table

    private final UTF8String left, known;
    private final Extension[] table; // by hash of the name
    final boolean readsJson;

    private Extensions(UTF8String left, UTF8String known) {
        this.left = left.copy();
        this.known = known.copy();
        String[] names = left.toString().split(","), descriptions = known.toString().split(",");
        int size = 16;
        while (size < 4 * (names.length + descriptions.length)) size *= 2;
        table = new Extension[size];
        for (int n = 0; n < names.length; n++) {
            if (!names[n].isEmpty() && !names[n].equals(OTHER_JSON)) add(new Extension(names[n]));
        }
        for (int n = 0; n < descriptions.length; n++) {
            // A description without a type is a name only, of which nothing is known.
            if (descriptions[n].indexOf(' ') > 0) add(new Extension(descriptions[n]));
        }
        readsJson = !Arrays.asList(names).contains(OTHER_JSON);
    }

    static Extensions of(UTF8String left, UTF8String known) {
        Object[] used = last;
        // Spark passes the same objects with all rows of a query.
        if (used[0] == left && used[1] == known) return (Extensions) used[2];
        Extensions found = find(left, known);
        last = new Object[] {left, known, found};
        return found;
    }

    private static Extensions find(UTF8String left, UTF8String known) {
        Extensions[] tables = cache;
        for (int n = 0; n < tables.length; n++) {
            if (tables[n].left.equals(left) && tables[n].known.equals(known)) return tables[n];
        }
        Extensions made = new Extensions(left, known);
        Extensions[] more = new Extensions[Math.min(tables.length + 1, CACHE_SIZE)];
        more[0] = made;
        System.arraycopy(tables, 0, more, 1, more.length - 1);
        cache = more;
        return made;
    }

    private void add(Extension extension) {
        int at = slot(extension.name, 0, extension.name.length);
        while (table[at] != null) at = at + 1 & table.length - 1;
        table[at] = extension;
    }

    private int slot(byte[] b, int from, int to) {
        int hash = to - from;
        for (int at = from; at < to; at++) hash = 31 * hash + b[at];
        return (hash ^ hash >>> 15) & table.length - 1;
    }

    /** Return the extension of a name, or null. */
    Extension find(byte[] b, int from, int to) {
        int at = slot(b, from, to);
        while (table[at] != null && !Text.is(table[at].name, b, from, to)) at = at + 1 & table.length - 1;
        return table[at];
    }
}
