package cloudevents_kafka.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
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
    private static final UTF8String CONTENT_TYPE = UTF8String.fromString("content-type");
    private static final UTF8String PREFIX = UTF8String.fromString("ce_");

    final Rules rules;
    private InternalRow[] names = new InternalRow[4], nested = null, values = null;
    int named = 0, nests = 0, valued = 0; // the lengths of the lists

    Deviations(Rules rules) {
        this.rules = rules;
    }

    private static InternalRow[] grown(InternalRow[] list, int length) {
        if (list == null) return new InternalRow[2];
        return length < list.length ? list : (InternalRow[]) Arrays.copyOf(list, 2 * length);
    }

    private InternalRow readAs(UTF8String name, String id, UTF8String[] texts) {
        return Rules.problem(name, UTF8String.concat(texts), rules.clause(id));
    }

    private void addName(InternalRow problem) {
        names = grown(names, named);
        names[named++] = problem;
    }

    /** The content-type header is missing, or is not that of an event. */
    void addContentType(boolean missing) {
        addName(missing ? rules.noContentType : rules.otherContentType);
    }

    /** The data's content type is in ce_datacontenttype only. */
    void addCopy() {
        addName(rules.copy);
    }

    /** A header was read as one of another name, which has the prefix ce_ before these bytes, or is content-type. */
    void addHeader(UTF8String name, byte[] read) {
        UTF8String rest = read == null ? CONTENT_TYPE : UTF8String.fromBytes(read);
        UTF8String prefix = read == null ? UTF8String.EMPTY_UTF8 : PREFIX;
        addName(readAs(name, "header", new UTF8String[] {rules.text("header"), prefix, rest}));
    }

    /** A member, or an attribute after ce_, was read as one of another name. */
    void addMember(UTF8String name, byte[] read) {
        addName(readAs(name, "member", new UTF8String[] {rules.text("member"), UTF8String.fromBytes(read)}));
    }

    void addNested(UTF8String name) {
        nested = grown(nested, nests);
        nested[nests++] = rules.problem(name, "nested");
    }

    void addValue(InternalRow problem) {
        values = grown(values, valued);
        values[valued++] = problem;
    }

    /** A member was left out because of its name. */
    void addIgnored(UTF8String name, UTF8String value) {
        addValue(rules.leftOut(name, name.numBytes() == 0 ? "no-name" : "name", value));
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
