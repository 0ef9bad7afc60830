package cloudevents_kafka.spark;

import java.util.HashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The texts and clauses of the deviations that lenient reading accepts, by ids.
 *
 * Python has them in {@code spark/java/deviations.py}. Each query passes them with every row, as lines of an id, a
 * clause and a text with spaces between them; the last table is cached.
 */
final class Rules {
    private static volatile Rules last = new Rules(UTF8String.fromString(""));
    private static volatile Object[] lastUsed = new Object[2]; // the last text and its table

    private final UTF8String source;
    private final HashMap texts = new HashMap(), clauses = new HashMap();
    final InternalRow noContentType, otherContentType, copy, uriReference, uri, noSubject, noTime;

    private Rules(UTF8String source) {
        this.source = source.copy();
        String[] lines = source.toString().split("\n");
        for (int n = 0; n < lines.length; n++) {
            String[] words = lines[n].split(" ", 3);
            if (words.length < 3) continue;
            clauses.put(words[0], UTF8String.fromString(words[1]));
            texts.put(words[0], UTF8String.fromString(words[2]));
        }
        noContentType = problem("content-type", "no-content-type");
        otherContentType = problem("content-type", "other-content-type");
        copy = problem("datacontenttype", "copy");
        uriReference = problem("source", "uri-reference");
        uri = problem("dataschema", "uri");
        noSubject = leftOut(UTF8String.fromString("subject"), "no-subject", UTF8String.EMPTY_UTF8);
        noTime = leftOut(UTF8String.fromString("time"), "no-time", UTF8String.EMPTY_UTF8);
    }

    static Rules of(UTF8String source) {
        Object[] used = lastUsed;
        if (used[0] == source) return (Rules) used[1]; // Spark passes the same object with all rows of a query
        Rules found = last;
        if (!found.source.equals(source)) {
            found = new Rules(source);
            last = found;
        }
        lastUsed = new Object[] {source, found};
        return found;
    }

    private InternalRow problem(String attribute, String id) {
        return problem(UTF8String.fromString(attribute), id);
    }

    /** Return the problem of a rule. */
    InternalRow problem(UTF8String attribute, String id) {
        return problem(attribute, text(id), clause(id));
    }

    static InternalRow problem(UTF8String attribute, UTF8String rule, UTF8String clause) {
        return leftOut(attribute, rule, clause, null);
    }

    /** Return the report of what is left out because of a rule, with its value, which is a text. */
    InternalRow leftOut(UTF8String attribute, String id, UTF8String value) {
        return leftOut(attribute, text(id), clause(id), value);
    }

    static InternalRow leftOut(UTF8String attribute, UTF8String rule, UTF8String clause, UTF8String value) {
        return new GenericInternalRow(new Object[] {attribute, rule, clause, value, null});
    }

    UTF8String text(String id) {
        return (UTF8String) texts.get(id);
    }

    UTF8String clause(String id) {
        return (UTF8String) clauses.get(id);
    }
}
