package cloudevents_kafka.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What lenient reading accepted in one record, in the order of Python: names, then objects and lists
 * that are kept as text, then values.
 *
 * Each list is in the order in which Java finds its problems. Where that may differ from Python's
 * order, the record is left to Python.
 */
final class Deviations {
    private static final String LEFT_OUT = ": left out";
    private static final UTF8String CONTENT_TYPE = UTF8String.fromString("content-type");
    private static final InternalRow NO_CONTENT_TYPE =
        problem(CONTENT_TYPE, "header is missing: the value was read as a JSON event", "K-09");
    private static final InternalRow OTHER_CONTENT_TYPE =
        problem(CONTENT_TYPE, "does not name an event format: the value was read as a JSON event", "K-15");
    private static final InternalRow COPY =
        problem(UTF8String.fromString("datacontenttype"), "is in ce_datacontenttype", "K-04");
    private static final UTF8String NESTED = UTF8String.fromString("is an object or a list: kept as its JSON text");
    private static final UTF8String NESTED_CLAUSE = UTF8String.fromString("J-03");
    private static final UTF8String NAME_CLAUSE = UTF8String.fromString("N-01");
    private static final UTF8String HEADER_CLAUSE = UTF8String.fromString("K-05");
    private static final UTF8String READ_AS = UTF8String.fromString("was read as ");
    private static final UTF8String READ_AS_HEADER = UTF8String.fromString("was read as ce_");
    private static final InternalRow NO_NAME =
        problem(UTF8String.fromString(""), "an attribute name must have at least one character" + LEFT_OUT, "N-03");
    private static final UTF8String NAME = UTF8String.fromString("an attribute name must have only a-z and 0-9" + LEFT_OUT);
    static final UTF8String EMPTY = UTF8String.fromString("must not be empty" + LEFT_OUT);
    static final UTF8String BOOLEAN = UTF8String.fromString("must be true or false");
    static final UTF8String BOOLEAN_CLAUSE = UTF8String.fromString("T-03");
    static final InternalRow SOURCE = problem(UTF8String.fromString("source"), "must be a URI-reference", "T-11");
    static final InternalRow SCHEMA = problem(UTF8String.fromString("dataschema"), "must be a URI with a scheme", "T-10");
    static final InternalRow TIME = problem(UTF8String.fromString("time"), "must be an RFC 3339 timestamp", "T-12");
    static final InternalRow NO_SUBJECT = problem(UTF8String.fromString("subject"), "must not be empty" + LEFT_OUT, "R-12");
    static final InternalRow NO_TIME = problem(UTF8String.fromString("time"), "must not be empty" + LEFT_OUT, "R-13");

    private InternalRow[] names = new InternalRow[4], nested = null, values = null;
    int named = 0, nests = 0, valued = 0; // the lengths of the lists

    private static InternalRow problem(UTF8String attribute, String rule, String clause) {
        return problem(attribute, UTF8String.fromString(rule), UTF8String.fromString(clause));
    }

    static InternalRow problem(UTF8String attribute, UTF8String rule, UTF8String clause) {
        return new GenericInternalRow(new Object[] {attribute, rule, clause});
    }

    private static InternalRow[] grown(InternalRow[] list, int length) {
        if (list == null) return new InternalRow[2];
        return length < list.length ? list : (InternalRow[]) Arrays.copyOf(list, 2 * length);
    }

    private void addName(InternalRow problem) {
        names = grown(names, named);
        names[named++] = problem;
    }

    /** The content-type header is missing, or is not that of an event. */
    void addContentType(boolean missing) {
        addName(missing ? NO_CONTENT_TYPE : OTHER_CONTENT_TYPE);
    }

    /** The data's content type is in ce_datacontenttype only. */
    void addCopy() {
        addName(COPY);
    }

    /** A header was read as one of another name, which has the prefix ce_ before these bytes, or is content-type. */
    void addHeader(UTF8String name, byte[] read) {
        UTF8String rest = read == null ? CONTENT_TYPE : UTF8String.fromBytes(read);
        addName(problem(name, UTF8String.concat(new UTF8String[] {read == null ? READ_AS : READ_AS_HEADER, rest}), HEADER_CLAUSE));
    }

    /** A member was read as one of another name. */
    void addMember(UTF8String name, byte[] read) {
        addName(problem(name, UTF8String.concat(new UTF8String[] {READ_AS, UTF8String.fromBytes(read)}), NAME_CLAUSE));
    }

    void addNested(UTF8String name) {
        nested = grown(nested, nests);
        nested[nests++] = problem(name, NESTED, NESTED_CLAUSE);
    }

    void addValue(InternalRow problem) {
        values = grown(values, valued);
        values[valued++] = problem;
    }

    /** A member was left out because of its name. */
    void addIgnored(UTF8String name) {
        addValue(name.numBytes() == 0 ? NO_NAME : problem(name, NAME, NAME_CLAUSE));
    }

    /** Return all problems, or null if there are none. */
    GenericArrayData array() {
        int count = named + nests + valued;
        if (count == 0) return null;
        Object[] all = new Object[count];
        System.arraycopy(names, 0, all, 0, named);
        if (nests > 0) System.arraycopy(nested, 0, all, named, nests);
        if (valued > 0) System.arraycopy(values, 0, all, named + nests, valued);
        return new GenericArrayData(all);
    }
}
