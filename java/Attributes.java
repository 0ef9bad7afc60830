package cloudevents_kafka.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The attributes of one event, each checked when it is added; rules about several at the end.
 *
 * An attribute that breaks a rule is refused; Python then names the rule. Lenient reading corrects the
 * values that known producers write, leaves out or renames others, and lists these deviations.
 */
final class Attributes {
    private static final byte[] ID = Text.word("id");
    private static final byte[] SOURCE = Text.word("source");
    private static final byte[] TYPE = Text.word("type");
    private static final byte[] SPECVERSION = Text.word("specversion");
    private static final byte[] SUBJECT = Text.word("subject");
    private static final byte[] TIME = Text.word("time");
    private static final byte[] DATACONTENTTYPE = Text.word("datacontenttype");
    private static final byte[] DATASCHEMA = Text.word("dataschema");
    private static final byte[] DATA = Text.word("data");
    private static final byte[] START = Text.word("deprecationfrom");
    private static final byte[] VERSION = Text.word("1.0");
    private static final byte[] ZERO = Text.word("0");
    private static final byte[] MINUS_ZERO = Text.word("-0");
    private static final UTF8String INTEGER = UTF8String.fromString("Integer");
    private static final int MAX_NAME = 50000; // the longest name of an extension that Spark reads from Python
    private static final int MAX_COMPARED = 16; // more extensions are found by their hash
    private static final int MAX_OTHERS = 16;
    private static final int FIELDS = 15; // of an event's row: those below, and the error as the last
    private static final int AT_ID = 0, AT_SOURCE = 1, AT_TYPE = 2, AT_SPECVERSION = 3, AT_SUBJECT = 4, AT_TIME = 5,
        AT_TIME_TEXT = 6, AT_DATACONTENTTYPE = 7, AT_DATASCHEMA = 8, AT_EXTENSIONS = 9, AT_EXTENSION_TYPES = 10,
        AT_DATA = 11, AT_DATA_KIND = 12, AT_MODE = 13, AT_TOLERATED = 15, NOT_CORE = -1;

    private static volatile byte[] schema = Text.word("a:"); // the last valid dataschema: many events have the same

    private final Extensions known;
    private final Object[] fields;
    private UTF8String[] names = new UTF8String[4];
    private UTF8String[] texts = new UTF8String[4];
    private UTF8String[] types = null; // of the extensions, null for texts and for known types
    private int extensions = 0;
    private Set index = null; // the names, if they are many
    private Extension[] related = null; // the known extensions that have rules about other attributes
    private int relations = 0;
    private UTF8String[] absent = null; // the names of attributes that are null
    private int absences = 0;
    private byte[][] otherNames = null, otherTexts = null; // members whose names are not those of attributes
    private UTF8String[] otherTypes = null;
    private boolean[] nested = null; // whether such a member was an object or a list
    private int[] places = null; // how many extensions were before such a member
    private int others = 0;
    MediaType contentType = null; // that of datacontenttype
    final Deviations found; // null if reading is strict
    boolean unmarked = false; // whether only the attributes show that the record is an event

    /** @param rules those of lenient reading, or null */
    Attributes(Extensions known, Rules rules) {
        this.known = known;
        fields = new Object[rules == null ? FIELDS : AT_TOLERATED + 1];
        found = rules == null ? null : new Deviations(rules);
    }

    /** Add an attribute; return false if it breaks a rule. */
    boolean add(byte[] n, int from, int to, byte[] b, int begin, int end) {
        return Text.isString(b, begin, end) && addString(n, from, to, b, begin, end);
    }

    /** Add an attribute whose text is a String. */
    boolean addString(byte[] n, int from, int to, byte[] b, int begin, int end) {
        int at = core(n, from, to);
        if (at == NOT_CORE) return addExtension(n, from, to, b, begin, end, null);
        if (fields[at] != null) return false; // N-05: each attribute at most once
        // none is empty
        if (begin == end || !isValid(at, b, begin, end)) return found != null && correct(at, b, begin, end);
        fields[at] = UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    /** Add datacontenttype, whose header has another name. */
    boolean addContentType(byte[] b) {
        return add(DATACONTENTTYPE, 0, DATACONTENTTYPE.length, b, 0, b.length);
    }

    private static int core(byte[] n, int from, int to) {
        switch (to - from) {
            case 2: return Text.is(ID, n, from, to) ? AT_ID : NOT_CORE;
            case 4: return Text.is(TYPE, n, from, to) ? AT_TYPE : Text.is(TIME, n, from, to) ? AT_TIME_TEXT : NOT_CORE;
            case 6: return Text.is(SOURCE, n, from, to) ? AT_SOURCE : NOT_CORE;
            case 7: return Text.is(SUBJECT, n, from, to) ? AT_SUBJECT : NOT_CORE;
            case 10: return Text.is(DATASCHEMA, n, from, to) ? AT_DATASCHEMA : NOT_CORE;
            case 11: return Text.is(SPECVERSION, n, from, to) ? AT_SPECVERSION : NOT_CORE;
            case 15: return Text.is(DATACONTENTTYPE, n, from, to) ? AT_DATACONTENTTYPE : NOT_CORE;
            default: return NOT_CORE;
        }
    }

    private boolean isValid(int at, byte[] b, int begin, int end) {
        switch (at) {
            case AT_SOURCE: return Uri.isReference(b, begin, end);
            case AT_DATASCHEMA: return isSchema(b, begin, end);
            case AT_SPECVERSION: return Text.is(VERSION, b, begin, end);
            case AT_DATACONTENTTYPE:
                contentType = MediaType.of(b, begin, end);
                return contentType.valid;
            case AT_TIME_TEXT:
                fields[AT_TIME] = Time.micros(b, begin, end);
                return fields[AT_TIME] != null;
            default: return true;
        }
    }

    /** Add a value that breaks a rule as lenient reading does; return false if it refuses it, or for other rules. */
    private boolean correct(int at, byte[] b, int begin, int end) {
        if (begin == end) {
            if (at != AT_SUBJECT && at != AT_TIME_TEXT) return false;
            found.addValue(at == AT_SUBJECT ? found.rules.noSubject : found.rules.noTime);
            byte[] name = at == AT_SUBJECT ? SUBJECT : TIME;
            addAbsent(name, 0, name.length);
            return true;
        }
        if (at == AT_TIME_TEXT) { // an event has an instant, or no time
            UTF8String value = UTF8String.fromBytes(b, begin, end - begin);
            found.addValue(found.rules.leftOut(UTF8String.fromString("time"), "no-timestamp", value));
            addAbsent(TIME, 0, TIME.length);
            return true;
        }
        if (at != AT_SOURCE && at != AT_DATASCHEMA) return false;
        boolean unquoted = Text.isQuoted(b, begin, end) && isValid(at, b, begin + 1, end - 1);
        int from = unquoted ? begin + 1 : begin, to = unquoted ? end - 1 : end;
        fields[at] = UTF8String.fromBytes(b, from, to - from);
        found.addValue(at == AT_SOURCE ? found.rules.uriReference : found.rules.uri);
        return true;
    }

    private static boolean isSchema(byte[] b, int begin, int end) {
        byte[] last = schema;
        if (Arrays.equals(b, begin, end, last, 0, last.length)) return true;
        if (!Uri.isUri(b, begin, end)) return false;
        schema = Arrays.copyOfRange(b, begin, end);
        return true;
    }

    /** Add a number or a boolean, whose text this is. */
    boolean addTyped(byte[] n, int from, int to, byte[] b, int begin, int end, UTF8String type) {
        return core(n, from, to) == NOT_CORE && addExtension(n, from, to, b, begin, end, type);
    }

    /** @param type that of a number or a boolean, null for a text, whose name may have a type */
    private boolean addExtension(byte[] n, int from, int to, byte[] b, int begin, int end, UTF8String type) {
        if (to - from > MAX_NAME) return false;
        Extension extension = known.find(n, from, to);
        UTF8String listed = type;
        if (extension != null) {
            if (extension.type == null) return false;
            if (type != null && !type.equals(extension.type)) return false;
            if (!extension.accepts(b, begin, end)) {
                if (found == null || type != null) return false;
                UTF8String name = UTF8String.fromBytes(n, from, to - from);
                if (begin == end) {
                    if (!extension.isLeftOutIfEmpty()) return false;
                    found.addValue(Rules.leftOut(name, found.rules.text("empty"), extension.clause, UTF8String.EMPTY_UTF8));
                    addAbsent(n, from, to);
                    return true;
                }
                b = extension.corrected(b, begin, end);
                if (b == null) return false;
                begin = 0;
                end = b.length;
                found.addValue(found.rules.problem(name, "boolean"));
            }
            if (extension.isRelated()) relate(extension);
            type = extension.type;
            listed = null; // the name says it
        } else if (!Text.isName(n, from, to) || Text.is(DATA, n, from, to)) { // N-04: reserved for the data
            return false;
        }
        UTF8String name = UTF8String.fromBytes(n, from, to - from);
        if (isRepeated(name)) return false; // N-05
        if (extensions == names.length) grow();
        if (listed != null) {
            if (types == null) types = new UTF8String[names.length];
            types[extensions] = listed;
        }
        names[extensions] = name;
        boolean zero = INTEGER.equals(type) && Text.is(MINUS_ZERO, b, begin, end); // T-05: its canonical text
        texts[extensions++] = zero ? UTF8String.fromBytes(ZERO) : UTF8String.fromBytes(b, begin, end - begin);
        return true;
    }

    private boolean isRepeated(UTF8String name) {
        if (extensions < MAX_COMPARED) {
            for (int k = 0; k < extensions; k++) {
                if (names[k].equals(name)) return true;
            }
            return false;
        }
        if (index == null) index = new HashSet(Arrays.asList(Arrays.copyOf(names, extensions)));
        return !index.add(name);
    }

    private void grow() {
        names = (UTF8String[]) Arrays.copyOf(names, 2 * extensions);
        texts = (UTF8String[]) Arrays.copyOf(texts, 2 * extensions);
        if (types != null) types = (UTF8String[]) Arrays.copyOf(types, 2 * extensions);
    }

    private void relate(Extension extension) {
        if (related == null) related = new Extension[4];
        if (relations == related.length) related = (Extension[]) Arrays.copyOf(related, 2 * relations);
        related[relations++] = extension;
    }

    /** Add the name of an attribute that is null; it may not occur again. */
    void addAbsent(byte[] n, int from, int to) {
        if (absent == null) absent = new UTF8String[4];
        if (absences == absent.length) absent = (UTF8String[]) Arrays.copyOf(absent, 2 * absences);
        absent[absences++] = UTF8String.fromBytes(n, from, to - from);
    }

    /** Add an extension that is an object or a list; this is its text, without white space. */
    boolean addNested(byte[] n, int from, int to, byte[] text) {
        if (core(n, from, to) != NOT_CORE) return false;
        found.addNested(UTF8String.fromBytes(n, from, to - from));
        return add(n, from, to, text, 0, text.length);
    }

    /** Add a member whose name is not that of an attribute, for {@link #addOthers}. */
    boolean addOther(byte[] name, byte[] text, UTF8String type, boolean isNested) {
        if (others == MAX_OTHERS || !Text.isString(text, 0, text.length)) return false;
        if (others == 0) {
            otherNames = new byte[MAX_OTHERS][];
            otherTexts = new byte[MAX_OTHERS][];
            otherTypes = new UTF8String[MAX_OTHERS];
            nested = new boolean[MAX_OTHERS];
            places = new int[MAX_OTHERS];
        }
        otherNames[others] = name;
        otherTexts[others] = text;
        otherTypes[others] = type;
        places[others] = extensions;
        nested[others++] = isNested;
        return true;
    }

    /**
     * Add the other members under the names that theirs stand for; leave out those for which there is none.
     *
     * @return false if Python decides, also because it lists the deviations in another order
     */
    boolean addOthers() {
        if (others > 0 && unmarked && !hasRequired()) return false; // these need their exact names
        int valued = found.valued, nests = found.nests, ignored = 0, first = extensions;
        byte[][] taken = new byte[others][];
        for (int n = 0; n < others; n++) {
            UTF8String name = UTF8String.fromBytes(otherNames[n]);
            byte[] folded = HeaderName.folded(otherNames[n], 0, otherNames[n].length);
            boolean valid = folded != null;
            if (valid && (isAbsent(folded) || isIn(taken, folded, n))) return false;
            if (!valid || text(folded) != null) { // N-01; the attribute with the valid name takes precedence
                if (nested[n]) return false;
                boolean zero = INTEGER.equals(otherTypes[n]) && Arrays.equals(MINUS_ZERO, otherTexts[n]);
                found.addIgnored(name, UTF8String.fromBytes(zero ? ZERO : otherTexts[n]));
                ignored++;
                continue;
            }
            taken[n] = folded;
            int before = extensions;
            found.addMember(name, folded);
            byte[] text = otherTexts[n];
            boolean added = nested[n] ? addNested(folded, 0, folded.length, text)
                : otherTypes[n] == null ? add(folded, 0, folded.length, text, 0, text.length)
                : addTyped(folded, 0, folded.length, text, 0, text.length, otherTypes[n]);
            if (!added) return false;
            if (extensions > before) places[before - first] = places[n]; // not one that is still needed
        }
        if (extensions > first) restoreOrder(first);
        if (ignored > 0) return found.valued == ignored && found.nests == 0;
        return (valued == 0 || found.valued == valued) && (nests == 0 || found.nests == nests);
    }

    /** Put the extensions from {@code first} on, which were the other members, where they were in the record. */
    private void restoreOrder(int first) {
        UTF8String[][] from = {names, texts, types}, ordered = new UTF8String[3][];
        for (int n = 0; n < from.length; n++) {
            if (from[n] == null) continue;
            ordered[n] = new UTF8String[from[n].length];
            int to = 0, other = first;
            for (int k = 0; k <= first; k++) {
                while (other < extensions && places[other - first] == k) ordered[n][to++] = from[n][other++];
                if (k < first) ordered[n][to++] = from[n][k];
            }
        }
        names = ordered[0];
        texts = ordered[1];
        types = ordered[2];
    }

    private static boolean isIn(byte[][] names, byte[] name, int count) {
        for (int n = 0; n < count; n++) {
            if (names[n] != null && Arrays.equals(names[n], name)) return true;
        }
        return false;
    }

    private boolean isAbsent(byte[] name) {
        for (int n = 0; n < absences; n++) {
            if (Arrays.equals(absent[n].getBytes(), name)) return true;
        }
        return false;
    }

    private boolean isAnyRepeated() {
        Set all = new HashSet(Arrays.asList(Arrays.copyOf(names, extensions)));
        for (int n = 0; n < others; n++) {
            if (!all.add(UTF8String.fromBytes(otherNames[n]))) return true;
        }
        for (int n = 0; n < absences; n++) {
            byte[] name = absent[n].getBytes();
            int at = core(name, 0, name.length);
            if (!all.add(absent[n]) || at != NOT_CORE && fields[at] != null) return true;
        }
        return false;
    }

    private boolean areRelationsValid() {
        for (int n = 0; n < relations; n++) {
            Extension extension = related[n];
            for (int k = 0; k < extension.needs.length; k++) {
                if (text(extension.needs[k]) == null) return false;
            }
            if (extension.noSchema && fields[AT_DATASCHEMA] != null) return false;
            if (extension.notBeforeStart) {
                UTF8String start = text(START);
                if (start != null && Time.isBefore(text(extension.name).getBytes(), start.getBytes())) return false;
            }
        }
        return true;
    }

    /** Return the text of an attribute, or null. */
    private UTF8String text(byte[] name) {
        int at = core(name, 0, name.length);
        if (at != NOT_CORE) return (UTF8String) fields[at];
        UTF8String text = UTF8String.fromBytes(name);
        for (int n = 0; n < extensions; n++) {
            if (names[n].equals(text)) return texts[n];
        }
        return null;
    }

    boolean hasContentType() {
        return fields[AT_DATACONTENTTYPE] != null;
    }

    /** Return whether a text is datacontenttype. */
    boolean isContentType(byte[] text) {
        UTF8String received = (UTF8String) fields[AT_DATACONTENTTYPE];
        return received != null && received.equals(UTF8String.fromBytes(text));
    }

    private boolean hasRequired() {
        return fields[AT_ID] != null && fields[AT_SOURCE] != null && fields[AT_TYPE] != null && fields[AT_SPECVERSION] != null;
    }

    /** Return the number of extensions. */
    int size() {
        return extensions;
    }

    UTF8String name(int n) {
        return names[n];
    }

    /** Return the canonical text of an extension. */
    UTF8String text(int n) {
        return texts[n];
    }

    /** Return whether no attribute is missing, and none breaks a rule about several. */
    boolean isComplete() {
        return hasRequired() && (relations == 0 || areRelationsValid()); // REQUIRED
    }

    /** Return the row of the event, or null if attributes are missing or break a rule together. */
    InternalRow row(byte[] data, UTF8String kind, UTF8String mode) {
        if (!isComplete() || (absences > 0 || others > 1) && isAnyRepeated()) return null;
        fields[AT_EXTENSIONS] = new ArrayBasedMapData(array(names, extensions), array(texts, extensions));
        fields[AT_EXTENSION_TYPES] = extensionTypes();
        fields[AT_DATA] = data;
        fields[AT_DATA_KIND] = kind;
        fields[AT_MODE] = mode;
        if (found != null) fields[AT_TOLERATED] = found.array();
        return new GenericInternalRow(fields);
    }

    /** Return the types of the extensions that are not texts and not known, or null if there are none. */
    private ArrayBasedMapData extensionTypes() {
        if (types == null) return null;
        UTF8String[] typed = new UTF8String[extensions];
        int count = 0;
        for (int n = 0; n < extensions; n++) {
            if (types[n] == null) continue;
            typed[count] = names[n];
            types[count++] = types[n];
        }
        return new ArrayBasedMapData(array(typed, count), array(types, count));
    }

    private static GenericArrayData array(UTF8String[] texts, int count) {
        return new GenericArrayData(Arrays.copyOf(texts, count));
    }
}
